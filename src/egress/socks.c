/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/socks.h"

#include <string.h>

#define VERSION           5
#define NO_AUTHENTICATION 0
#define COMMAND_CONNECT   1
#define REQUEST_HEADER    4 /* version, command, reserved, type of the address */
#define PORT_LEN          2

enum address_type {
	ADDRESS_IPV4 = 1,
	ADDRESS_NAME = 3,
	ADDRESS_IPV6 = 4,
};

int socks_greeting(const void *data, size_t len)
{
	const unsigned char *p = data;

	if ((len > 0 && p[0] != VERSION) || (len > 1 && p[1] == 0))
		return -1;
	if (len < 2 || len < 2U + p[1])
		return 0;
	return memchr(p + 2, NO_AUTHENTICATION, p[1]) ? 2 + p[1] : -1;
}

/* The first bytes are judged as they come: a client may wait for the answer. */
static int check_header(const unsigned char *p, size_t len, enum socks_reply *ret_reply,
                        struct error *err)
{
	static const char *const commands[] = {
		[2] = "SOCKS: BIND is not supported",
		[3] = "SOCKS: UDP is not supported",
	};

	*ret_reply = SOCKS_FAILED;
	if (len > 0 && p[0] != VERSION)
		return error_set(err, ERR_INVALID, 0, "SOCKS: the version is not 5");
	if (len > 1 && p[1] != COMMAND_CONNECT) {
		*ret_reply = SOCKS_BAD_COMMAND;
		return error_set(err, ERR_INVALID, 0, "%s",
		                 p[1] == 2 || p[1] == 3 ? commands[p[1]]
		                                        : "SOCKS: the command is unknown");
	}
	if (len > 2 && p[2] != 0)
		return error_set(err, ERR_INVALID, 0, "SOCKS: the reserved byte is not 0");
	if (len > 3 && p[3] != ADDRESS_IPV4 && p[3] != ADDRESS_NAME && p[3] != ADDRESS_IPV6) {
		*ret_reply = SOCKS_BAD_ADDRESS;
		return error_set(err, ERR_INVALID, 0, "SOCKS: the type of the address is unknown");
	}
	return 0;
}

/* Of the request up to the port; 0: not known yet. */
static size_t address_end(const unsigned char *p, size_t len)
{
	if (len <= REQUEST_HEADER)
		return 0;
	if (p[3] == ADDRESS_NAME)
		return REQUEST_HEADER + 1U + p[REQUEST_HEADER];
	return REQUEST_HEADER + (p[3] == ADDRESS_IPV4 ? 4 : 16);
}

static int parse_address(const unsigned char *p, size_t end, struct target *ret, struct error *err)
{
	struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (p[3] == ADDRESS_NAME)
		return target_parse_host((const char *)p + REQUEST_HEADER + 1,
		                         end - REQUEST_HEADER - 1, false, ret, err);
	if (p[3] == ADDRESS_IPV4)
		memcpy(a.s6_addr + 12, p + REQUEST_HEADER, 4);
	else
		memcpy(a.s6_addr, p + REQUEST_HEADER, 16);
	if (p[3] == ADDRESS_IPV6 && IN6_IS_ADDR_V4MAPPED(&a))
		return error_set(err, ERR_INVALID, 0, "the IPv6 address is an IPv4-mapped one");
	target_from_address(&a, 0, ret);
	return 0;
}

int socks_request(const void *data, size_t len, struct target *ret, enum socks_reply *ret_reply,
                  struct error *err)
{
	const unsigned char *p = data;
	enum socks_reply reply;
	struct target target;
	size_t end;

	if (check_header(p, len, &reply, err) < 0) {
		*ret_reply = reply;
		return -1;
	}
	end = address_end(p, len);
	if (end == 0 || len < end + PORT_LEN)
		return 0;
	if (parse_address(p, end, &target, err) < 0) {
		*ret_reply = SOCKS_BAD_ADDRESS;
		return error_wrap(err, "SOCKS");
	}
	target.port = (uint16_t)(p[end] << 8 | p[end + 1]);
	if (target.port == 0) {
		*ret_reply = SOCKS_FAILED;
		return error_set(err, ERR_INVALID, 0, "SOCKS: the port is 0");
	}
	*ret = target;
	return (int)(end + PORT_LEN);
}

void socks_reply(enum socks_reply reply, unsigned char ret_bytes[SOCKS_REPLY_LEN])
{
	memset(ret_bytes, 0, SOCKS_REPLY_LEN);
	ret_bytes[0] = VERSION;
	ret_bytes[1] = (unsigned char)reply;
	ret_bytes[3] = ADDRESS_IPV4;
}
