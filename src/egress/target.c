/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/target.h"

#include "base/str.h"
#include "egress/address.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define LABEL_MAX   63
#define PORT_DIGITS 5

static int refuse(struct error *err, const char *why)
{
	return error_set(err, ERR_INVALID, 0, "%s", why);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Not tolower(), which has a locale. */
static char to_lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c;
}

static bool is_name_char(char c)
{
	c = to_lower(c);
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* A resolver may take a name for an address if its last label is a number in any notation. */
static bool is_number(const char *label, size_t len)
{
	size_t digits = 0;

	while (digits < len && is_digit(label[digits]))
		digits++;
	return digits == len || (len >= 2 && label[0] == '0' && to_lower(label[1]) == 'x');
}

static int check_label(const char *label, size_t len, struct error *err)
{
	if (len == 0)
		return refuse(err, "the host has an empty label");
	if (len > LABEL_MAX)
		return refuse(err, "the host has a label of more than 63 characters");
	if (label[0] == '-' || label[len - 1] == '-')
		return refuse(err, "a label of the host begins or ends with a hyphen");
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(label[i]))
			return refuse(err, "the host has a character other than ASCII letters, "
			                   "digits, hyphens, underscores and dots");
	return 0;
}

static int parse_name(const char *text, size_t len, struct target *ret, struct error *err)
{
	struct target target = {0};
	const char *label = text, *end;

	if (text[len - 1] == '.')
		len--;
	if (len >= TARGET_HOST_LEN)
		return refuse(err, "the host has more than 253 characters");
	end = text + len;
	for (;;) {
		const char *dot = memchr(label, '.', (size_t)(end - label));
		const char *stop = dot ? dot : end;

		if (check_label(label, (size_t)(stop - label), err) < 0)
			return -1;
		if (!dot)
			break;
		label = dot + 1;
	}
	if (is_number(label, (size_t)(end - label)))
		return refuse(err, "the host is a number or an address in an unusual notation");
	for (size_t i = 0; i < len; i++)
		target.host[i] = to_lower(text[i]);
	*ret = target;
	return 0;
}

int target_parse_host(const char *text, size_t len, bool bracketed, struct target *ret,
                      struct error *err)
{
	struct in6_addr address;
	bool has_colon;

	if (len == 0)
		return refuse(err, "the host is empty");
	has_colon = memchr(text, ':', len) != NULL;
	if (has_colon && !bracketed)
		return refuse(err, "an IPv6 address needs brackets");
	if (address_parse(text, len, &address) == 0 && has_colon == bracketed) {
		target_from_address(&address, 0, ret);
		return 0;
	}
	if (bracketed)
		return refuse(err, "no IPv6 address in the brackets (or an IPv4-mapped one)");
	return parse_name(text, len, ret, err);
}

int target_parse_port(const char *text, size_t len, uint16_t *ret)
{
	unsigned port = 0;

	if (len == 0 || len > PORT_DIGITS || text[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(text[i]))
			return -EINVAL;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

/* Ends after the closing bracket, or at the colon. NULL: no closing bracket. */
static const char *end_of_host(const char *text, size_t len, bool bracketed)
{
	const char *at = len ? memchr(text, bracketed ? ']' : ':', len) : NULL;

	if (bracketed)
		return at ? at + 1 : NULL;
	return at ? at : text + len;
}

int target_parse(const char *text, size_t len, uint16_t default_port, struct target *ret,
                 struct error *err)
{
	bool bracketed = len > 0 && text[0] == '[';
	const char *end = end_of_host(text, len, bracketed);
	struct target target;
	uint16_t port = default_port;
	size_t host_len, rest;

	if (!end)
		return refuse(err, "a bracket is not closed");
	host_len = (size_t)(end - text);
	rest = len - host_len;
	if (rest == 0 && default_port == 0)
		return refuse(err, "the port is missing");
	if (rest > 0 && (*end != ':' || target_parse_port(end + 1, rest - 1, &port) < 0))
		return refuse(err, "the port is not a number from 1 to 65535");
	if (target_parse_host(text + bracketed, host_len - 2 * bracketed, bracketed, &target, err) <
	    0)
		return -1;
	target.port = port;
	*ret = target;
	return 0;
}

void target_from_address(const struct in6_addr *address, uint16_t port, struct target *ret)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);

	*ret = (struct target){.port = port, .is_address = true, .address = *address};
	/* Cannot fail: the family is known and the buffer large enough. */
	(void)inet_ntop(v4 ? AF_INET : AF_INET6, address->s6_addr + (v4 ? 12 : 0), ret->host,
	                sizeof(ret->host));
}

bool target_equal(const struct target *a, const struct target *b)
{
	return a->port == b->port && str_equal(a->host, b->host);
}

void target_format(const struct target *t, uint16_t default_port, char ret_text[TARGET_TEXT_LEN])
{
	bool bracketed = strchr(t->host, ':') != NULL;
	const char *open = bracketed ? "[" : "", *close = bracketed ? "]" : "";
	int r;

	if (t->port == default_port)
		r = str_format(ret_text, TARGET_TEXT_LEN, "%s%s%s", open, t->host, close);
	else
		r = str_format(ret_text, TARGET_TEXT_LEN, "%s%s%s:%u", open, t->host, close,
		               t->port);
	assert(r == 0);
	(void)r;
}
