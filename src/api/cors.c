/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/reply.h"
#include "base/str.h"
#include "http/status.h"

/*
 * Theory of operation. The response names the listed origin, never "*", and depends on it (Vary).
 * Browsers send no key with a preflight: it is answered before authentication, and reveals only a
 * path's methods.
 */

#define HEADERS_ALLOWED                                                                            \
	"Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, "       \
	"Range, "                                                                                  \
	"X-API-Key, X-Request-ID"
#define HEADERS_EXPOSED                                                                            \
	"Mcp-Session-Id, X-Request-ID, X-Process-Time, Retry-After, Should-Retry, Content-Range"
#define MAX_AGE "600" /* s */

static void answer_preflight(struct http_request *req, const char *allow)
{
	const struct http_header headers[] = {
		{"Access-Control-Allow-Methods", allow},
		{"Access-Control-Allow-Headers", HEADERS_ALLOWED},
		{"Access-Control-Max-Age", MAX_AGE},
	};

	http_reply(req, &(struct http_answer){.status = HTTP_NO_CONTENT,
	                                      .body = "",
	                                      .headers = headers,
	                                      .headers_count = ARRAY_SIZE(headers)});
}

bool cors_handle(const struct router *r, struct http_request *req)
{
	const char *origin = http_header(req, "Origin");
	struct route_match match;
	char allow[ROUTE_ALLOW_LEN] = "";
	struct error err = {0};

	if (!origin)
		return false;
	http_add_header(req, "Access-Control-Allow-Origin", origin);
	http_add_header(req, "Access-Control-Expose-Headers", HEADERS_EXPOSED);
	http_add_header(req, "Vary", "Origin");
	if (!str_equal(http_method(req), "OPTIONS") ||
	    !http_header(req, "Access-Control-Request-Method"))
		return false;
	/* No row has this method: a known path fails with the list of its methods. */
	if (route_find(r->parts.dialects, "OPTIONS", http_path(req), &match, allow, &err) < 0 &&
	    err.code != ERR_BAD_METHOD)
		return false;
	answer_preflight(req, allow);
	return true;
}
