/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: where a connection is to go, as written by hostile code. Parsed once, strictly: everything
 * later works on this struct, never on the text. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_HOST_LEN 254                   /* RFC 1035: 253 characters and NUL */
#define TARGET_TEXT_LEN (TARGET_HOST_LEN + 8) /* brackets, colon and port */

struct target {
	/* Lower case, no dot at its end; an address as inet_ntop() prints it, without brackets. */
	char host[TARGET_HOST_LEN];
	uint16_t port;
	bool is_address;         /* an IPv4 or IPv6 literal; .address has it */
	struct in6_addr address; /* IPv4 as ::ffff:a.b.c.d */
};

/**
 * target_parse_host - a name or a literal address: labels of ASCII letters, digits, hyphens and
 * underscores, 1 to 63 long, no hyphen first or last; one dot at the end is dropped. An IPv4
 * literal is four decimal numbers without leading zeros and without a dot at the end. Other
 * notations of addresses (a last label that is a number or 0x...) are errors, so are IPv4-mapped
 * addresses, user information, zones, escapes and other bytes. @bracketed: the text stood in
 * brackets, so it must be IPv6, and without them it must not. Sets the port to 0.
 */
int target_parse_host(const char *text, size_t len, bool bracketed, struct target *ret,
                      struct error *err) attr_must_check;
/** target_parse_port - 1 to 65535, without leading zeros. Return: 0 or -EINVAL. */
int target_parse_port(const char *text, size_t len, uint16_t *ret) attr_must_check;
/** target_parse - host[:port], [v6][:port]. @default_port: 0: a port is required. */
int target_parse(const char *text, size_t len, uint16_t default_port, struct target *ret,
                 struct error *err) attr_must_check;
/** target_from_address - for an address that did not come as text. */
void target_from_address(const struct in6_addr *address, uint16_t port, struct target *ret);
bool target_equal(const struct target *a, const struct target *b);
/** target_format - as target_parse() reads it, without the port if that is @default_port. */
void target_format(const struct target *t, uint16_t default_port, char ret_text[TARGET_TEXT_LEN]);
