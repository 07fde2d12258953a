/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by the folders of api/. */

#include "api/route.h"
#include "api/router.h"
#include "core/identity/scope.h"
#include "core/tenant/principal.h"
#include <stdint.h>

/* In the audit log, limited per second. */
struct refusals {
	uint64_t second;
	unsigned logged;  /* in this second */
	uint64_t dropped; /* since the last one logged */
};

struct http_server;
struct timer;
struct turns;

struct router {
	struct router_config parts;
	const struct config *config;
	struct run_service *runs;
	const char *unready; /* literal; NULL: ready */
	uint64_t started_us;
	struct refusals refusals;
	struct mcp *mcp;            /* owned by the dialect mcp; NULL: not served */
	struct http_server *server; /* NULL: not set */
	struct timer *expiry;       /* of the next key */
	struct turns *turns;        /* of tenants, for requests whose body is complete */
	size_t attached;            /* WebSockets of op/attach.c */
};

enum request_tag {
	REQUEST_TAG_ROUTE,     /* const struct route *; 0: none matches */
	REQUEST_TAG_DIALECT,   /* const struct dialect *; 0: the common error envelope */
	REQUEST_TAG_ERROR,     /* enum error_code of the response */
	REQUEST_TAG_PRINCIPAL, /* const struct principal *; 0: not authenticated yet */
	REQUEST_TAG_WARNINGS,  /* json_t *: of reply_warnings; 0: none */
	REQUEST_TAG_COUNT
};
static_assert(REQUEST_TAG_COUNT <= HTTP_TAGS, "every tag has its place");

/**
 * cors_handle - let pages of a listed origin read the response. Return: whether this was a
 * preflight, now answered.
 */
bool cors_handle(const struct router *r, struct http_request *req);

/** audit_request_done - log a refusal, or a change of keys, tenants ... */
void audit_request_done(struct router *r, const struct http_request *req,
                        const struct http_done *done);
/** audit_request_refusal - of a tool call; ignores other errors. */
void audit_request_refusal(struct router *r, const struct principal *who, const char *request_id,
                           const struct error *err, const char *tool);
void access_log_done(void *ctx, const struct http_request *req, const struct http_done *done);
