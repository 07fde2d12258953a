/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by the folders of api/: the router's parts and the tags of a request. */

#include "api/route.h"
#include "api/router.h"
#include "core/identity/scope.h"
#include "core/tenant/principal.h"
#include <stdint.h>

/* Refused requests in the audit log, limited per second. */
struct refusals {
	uint64_t second;
	unsigned logged;  /* in this second */
	uint64_t dropped; /* since the last one logged */
};

struct router {
	struct router_config parts;
	const struct config *config; /* parts.config */
	struct run_service *runs;    /* parts.runs */
	const char *unready;         /* literal; NULL: ready */
	uint64_t started_us;
	struct refusals refusals;
	struct mcp *mcp; /* of the dialect mcp, which owns it; NULL: not served */
};

enum request_tag {
	REQUEST_TAG_ROUTE,     /* const struct route *; 0: none matches */
	REQUEST_TAG_DIALECT,   /* const struct dialect *; 0: the common error envelope */
	REQUEST_TAG_ERROR,     /* enum error_code of the response */
	REQUEST_TAG_PRINCIPAL, /* const struct principal *; 0: not authenticated yet */
	REQUEST_TAG_COUNT
};
static_assert(REQUEST_TAG_COUNT <= HTTP_TAGS, "every tag has its place");

/** cors_handle - let pages of a listed origin read the response. Return: whether this was a
 * preflight, which is then answered. */
bool cors_handle(const struct router *r, struct http_request *req);

/** audit_request_done - log a refused request, or a change of keys, tenants ... */
void audit_request_done(struct router *r, const struct http_request *req,
                        const struct http_done *done);
/** audit_request_refusal - log a refused call of a tool; ignores other errors. */
void audit_request_refusal(struct router *r, const struct principal *who, const char *request_id,
                           const struct error *err, const char *tool);
/** access_log_done - count and log a finished request. */
void access_log_done(void *ctx, const struct http_request *req, const struct http_done *done);
