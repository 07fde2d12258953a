/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/reply.h"
#include "base/str.h"

/*
 * Theory of operation. Without configured origins no page gets this far. One of a listed origin is
 * told by name, never "*", that it may read; caches are told that the answer depends on who asks.
 * A preflight names no key, because browsers send none with it: it is answered before anybody asks
 * for one, and tells nothing but which methods a path has.
 */

#define NO_CONTENT 204
#define HEADERS_TAKEN                                                                              \
	"Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, "       \
	"Range, "                                                                                  \
	"X-API-Key, X-Request-ID"
#define HEADERS_SHOWN "Mcp-Session-Id, X-Request-ID, X-Process-Time, Retry-After, Content-Range"
#define KEPT_SECONDS  "600"

static void answer_preflight(struct http_request *req, const char *allow)
{
	const struct http_header headers[] = {
		{"Access-Control-Allow-Methods", allow},
		{"Access-Control-Allow-Headers", HEADERS_TAKEN},
		{"Access-Control-Max-Age", KEPT_SECONDS},
	};

	http_reply(req, &(struct http_answer){.status = NO_CONTENT,
	                                      .body = "",
	                                      .headers = headers,
	                                      .headers_count = ARRAY_SIZE(headers)});
}

bool cors_handle(struct http_request *req)
{
	const char *origin = http_header(req, "Origin");
	const struct route *route;
	char allow[ROUTER_ALLOW_LEN] = "";
	struct error err = {0};

	if (!origin)
		return false;
	http_add_header(req, "Access-Control-Allow-Origin", origin);
	http_add_header(req, "Access-Control-Expose-Headers", HEADERS_SHOWN);
	http_add_header(req, "Vary", "Origin");
	if (!str_equal(http_method(req), "OPTIONS") ||
	    !http_header(req, "Access-Control-Request-Method"))
		return false;
	/* No row has this method: a path that is there is refused with those it has. */
	if (router_find("OPTIONS", http_path(req), &route, allow, &err) < 0 &&
	    err.code != ERR_BAD_METHOD)
		return false;
	answer_preflight(req, allow);
	return true;
}
