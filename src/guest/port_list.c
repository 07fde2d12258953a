/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/ports.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "guest/agent.h"

/*
 * Theory of operation. The kernel prints listening sockets before all others, one line each:
 *
 *   sl  local_address rem_address   st ...
 *    0: 0100007F:1F90 00000000:0000 0A ...
 *
 * An address is words of 8 digits, the port has 4. The number of sockets is the program's choice:
 * only the first READ_MAX bytes are read.
 */

#define READ_MAX   (64 * 1024)
#define WORD_LEN   8
#define PORT_LEN   4
#define STATE_LEN  2
#define LISTENING  0x0a
#define WORDS_IPV6 4

/* Return: whether @len hex digits are at *at, which moves behind them. */
static bool take_hex(const char **at, size_t len, uint32_t *ret_value)
{
	uint32_t value = 0;

	for (size_t i = 0; i < len; i++) {
		int digit = parse_hex_digit((*at)[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (uint32_t)digit;
	}
	*at += len;
	*ret_value = value;
	return true;
}

static bool take_char(const char **at, char c)
{
	if (**at != c)
		return false;
	++*at;
	return true;
}

static uint8_t bound_to_ipv4(uint32_t word)
{
	if (word == htonl(INADDR_LOOPBACK))
		return WIRE_BOUND_LOOPBACK;
	return word == htonl(INADDR_ANY) ? WIRE_BOUND_ANY : WIRE_BOUND_OTHER;
}

static uint8_t bound_to_ipv6(const uint32_t *words)
{
	struct in6_addr address;

	memcpy(&address, words, sizeof(address));
	if (IN6_IS_ADDR_V4MAPPED(&address))
		return bound_to_ipv4(words[3]);
	if (IN6_IS_ADDR_LOOPBACK(&address))
		return WIRE_BOUND_LOOPBACK;
	return IN6_IS_ADDR_UNSPECIFIED(&address) ? WIRE_BOUND_ANY : WIRE_BOUND_OTHER;
}

static void note_port(struct port_table *table, uint16_t port, uint8_t bound)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].port == port) {
			table->rows[i].bound |= bound;
			return;
		}
	table->truncated = table->truncated || table->count == WIRE_LISTED_MAX;
	if (table->count < WIRE_LISTED_MAX)
		table->rows[table->count++] = (struct port_found){port, bound};
}

/* "ADDRESS:PORT", of either family. Return: number of the address's words; 0: malformed. */
static size_t take_socket(const char **at, uint32_t words[WORDS_IPV6], uint32_t *ret_port)
{
	size_t count = 0;

	while (count < WORDS_IPV6 && take_hex(at, WORD_LEN, &words[count]))
		count++;
	if ((count != 1 && count != WORDS_IPV6) || !take_char(at, ':') ||
	    !take_hex(at, PORT_LEN, ret_port))
		return 0;
	return count;
}

void port_list_line(struct port_table *table, const char *line)
{
	uint32_t words[WORDS_IPV6] = {0}, ignored[WORDS_IPV6], port = 0, other = 0, state = 0;
	const char *at = strchr(line, ':');
	size_t count = 0;

	if (!at)
		return; /* the title */
	at++;
	at += strspn(at, " ");
	count = take_socket(&at, words, &port);
	if (count == 0 || !take_char(&at, ' ') || take_socket(&at, ignored, &other) == 0 ||
	    !take_char(&at, ' ') || !take_hex(&at, STATE_LEN, &state))
		return;
	if (state == LISTENING && port != 0)
		note_port(table, (uint16_t)port,
		          count == 1 ? bound_to_ipv4(words[0]) : bound_to_ipv6(words));
}

/* A family without the file has no sockets. */
static void read_family(struct agent *a, const char *path, struct port_table *table)
{
	cleanup_close int fd = fd_open(path, O_RDONLY, 0);
	char *text = a->ch.scratch;
	size_t kept = 0;

	for (size_t total = 0; fd >= 0 && total < READ_MAX;) {
		ssize_t n = read(fd, text + kept, sizeof(a->ch.scratch) - kept - 1);
		char *line = text, *end = NULL;

		if (n <= 0)
			break;
		total += (size_t)n;
		text[kept + (size_t)n] = '\0';
		while ((end = strchr(line, '\n'))) {
			*end = '\0';
			port_list_line(table, line);
			line = end + 1;
		}
		kept = strlen(line);
		memmove(text, line, kept);
	}
}

int port_list(struct agent *a, const struct frame *frame)
{
	struct port_table table = {.count = 0};
	struct msg_port_list msg;
	int r = 0;

	if (msg_port_list_decode(frame, &msg) < 0)
		return -EPROTO;
	read_family(a, "/proc/self/net/tcp", &table);
	read_family(a, "/proc/self/net/tcp6", &table);
	for (size_t i = 0; i < table.count && r >= 0; i++)
		r = msg_port_found_encode(&a->ch.out, frame->id,
		                          &(struct msg_port_found){.port = table.rows[i].port,
		                                                   .bound = table.rows[i].bound});
	if (r < 0)
		return r;
	return msg_port_listed_encode(&a->ch.out, frame->id,
	                              &(struct msg_port_listed){.truncated = table.truncated});
}
