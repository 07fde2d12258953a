/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/answer.h"

#include "base/attr.h"
#include <assert.h>
#include <stdio.h>

static const struct row {
	const char *name; /* of the reason, for programs */
	const char *text; /* follows the host */
	int status;
	enum socks_reply socks;
} rows[] = {
	[EGRESS_REASON_NONE] = {"none", "", 500, SOCKS_FAILED},
	[EGRESS_BAD_REQUEST] = {"bad_request", "is not a valid proxy request", 400, SOCKS_FAILED},
	[EGRESS_BAD_NAME] = {"bad_name", "is not a host name", 400, SOCKS_BAD_ADDRESS},
	[EGRESS_NO_HOST] = {"host", "is not on the allowlist", 403, SOCKS_DENIED},
	[EGRESS_PORT] = {"port", "is on the allowlist with other ports", 403, SOCKS_DENIED},
	[EGRESS_TUNNEL] = {"tunnel", "is on the allowlist for plain HTTP only", 403, SOCKS_DENIED},
	[EGRESS_METHOD] = {"method", "is on the allowlist with other methods", 403, SOCKS_DENIED},
	[EGRESS_PATH] = {"path", "is on the allowlist with other paths", 403, SOCKS_DENIED},
	[EGRESS_ADDRESS] = {"address", "has an address that is not public", 403, SOCKS_DENIED},
	[EGRESS_NO_TLS] = {"tls", "may be reached with TLS only", 403, SOCKS_DENIED},
	[EGRESS_NO_SNI] = {"sni", "needs a TLS server name", 403, SOCKS_DENIED},
	[EGRESS_OTHER_SNI] = {"sni", "differs from the TLS server name", 403, SOCKS_DENIED},
	[EGRESS_ECH] = {"ech", "must not be reached with an encrypted server name", 403,
                        SOCKS_DENIED},
	[EGRESS_UNRESOLVED] = {"dns", "cannot be resolved", 502, SOCKS_UNREACHABLE},
	[EGRESS_UNREACHABLE] = {"connect", "cannot be reached", 502, SOCKS_REFUSED},
	[EGRESS_BYTES] = {"bytes", "cannot be reached: the limit on bytes is used up", 403,
                          SOCKS_DENIED},
	[EGRESS_UNTRUSTED] = {"certificate", "cannot prove its name", 502, SOCKS_FAILED},
	[EGRESS_SECRET_GONE] = {"secret", "has lost its secret", 403, SOCKS_DENIED},
	[EGRESS_MEMORY] = {"memory", "cannot be reached now: open connections hold too much memory",
                           503, SOCKS_FAILED},
};
static_assert(ARRAY_SIZE(rows) == EGRESS_REASON_COUNT, "every reason has a row");

/* The phrase says it too: many clients print nothing else. */
size_t answer_http(enum egress_reason reason, const struct target *target, const char *detail,
                   char ret_text[ANSWER_MAX])
{
	const struct row *row = &rows[reason];
	char body[ANSWER_MAX / 2];
	int len = snprintf(body, sizeof(body), "millibox: %s%s%s%s%s\n",
	                   target->host[0] ? target->host : "this", " ", row->text,
	                   detail[0] ? ": " : "", detail);

	if (len >= (int)sizeof(body))
		len = sizeof(body) - 1;
	len = snprintf(ret_text, ANSWER_MAX,
	               "HTTP/1.1 %d %s %s\r\n"
	               "X-Millibox-Denied: %s\r\n"
	               "Content-Type: text/plain\r\n"
	               "Content-Length: %d\r\n"
	               "Connection: close\r\n\r\n%s",
	               row->status, target->host[0] ? target->host : "this", row->text, row->name,
	               len, body);
	return len < ANSWER_MAX ? (size_t)len : ANSWER_MAX - 1;
}

enum socks_reply answer_socks(enum egress_reason reason)
{
	return rows[reason].socks;
}
