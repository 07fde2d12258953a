/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: SOCKS5 (RFC 1928), CONNECT only, no authentication. Pure. */

#include "base/attr.h"
#include "base/error.h"
#include "egress/target.h"

enum socks_reply {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_DENIED = 2, /* not allowed by ruleset */
	SOCKS_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_BAD_COMMAND = 7,
	SOCKS_BAD_ADDRESS = 8,
};

#define SOCKS_GREETING_MAX 257
#define SOCKS_REQUEST_MAX  262
#define SOCKS_REPLY_LEN    10

/** socks_greeting - Return: the bytes used, 0: more are needed, -1: malformed or without method 0.
 */
int socks_greeting(const void *data, size_t len) attr_must_check;
/**
 * socks_request - Return: the bytes used with *ret filled, 0: more are needed, -1 with *ret_reply.
 * A name goes through target_parse_host(); an IPv4-mapped IPv6 address and port 0 are errors.
 */
int socks_request(const void *data, size_t len, struct target *ret, enum socks_reply *ret_reply,
                  struct error *err) attr_must_check;
/** socks_reply - the bound address, which clients ignore, is 0.0.0.0:0. */
void socks_reply(enum socks_reply reply, unsigned char ret_bytes[SOCKS_REPLY_LEN]);
