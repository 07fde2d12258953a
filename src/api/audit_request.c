/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"
#include "api/internal.h"

#include "base/clock.h"
#include "core/observe/audit.h"
#include "http/status.h"
#include <jansson.h>

/*
 * Theory of operation. Core logs what it does itself. This logs refusals, and changes of who may do
 * what (the route's column audit). Beyond REFUSALS_PER_SECOND refusals are only counted; the next
 * logged one has the count.
 */

#define REFUSALS_PER_SECOND 20

static const char *refusal_of(enum error_code error)
{
	if (error == ERR_UNAUTHENTICATED)
		return "auth.failure";
	return error == ERR_DENIED || error == ERR_FORBIDDEN || error == ERR_NO_SCOPE
	               ? "request.refuse"
	               : NULL;
}

/* Return: whether to log one more. */
static bool take_turn(struct refusals *r)
{
	uint64_t second = clock_us() / USEC_PER_SEC;

	if (second != r->second) {
		r->second = second;
		r->logged = 0;
	}
	if (r->logged >= REFUSALS_PER_SECOND) {
		r->dropped++;
		return false;
	}
	r->logged++;
	return true;
}

static json_t *detail_of(const struct http_request *req, const char *route, uint64_t dropped)
{
	json_t *detail = json_pack("{s:s, s:s}", "method", http_method(req), "route", route);

	if (detail && dropped > 0)
		(void)json_object_set_new(detail, "untold_before",
		                          json_integer((json_int_t)dropped));
	return detail;
}

/* What the request created (the note), else the id in the path. */
static const char *object_of(const struct http_request *req, const struct route *route,
                             struct route_args *args)
{
	const char *note = http_note(req);

	if (note || !route || !route_parse(route->path, http_path(req), args))
		return note;
	return args->id[0] ? args->id : NULL;
}

void audit_request_refusal(struct router *r, const struct principal *who, const char *request_id,
                           const struct error *err, const char *tool)
{
	const char *refusal = refusal_of(err->code);
	struct audit_event event = {.action = refusal,
	                            .tenant = who->tenant,
	                            .key_id = who->key_id,
	                            .object = tool,
	                            .request_id = request_id,
	                            .result = error_text(err->code)};

	if (!r->parts.audit || !refusal || !take_turn(&r->refusals))
		return;
	event.detail = json_pack("{s:s}", "tool", tool);
	audit_write(r->parts.audit, &event);
}

void audit_request_done(struct router *r, const struct http_request *req,
                        const struct http_done *done)
{
	const struct route *route = (const struct route *)http_tag(req, REQUEST_TAG_ROUTE);
	enum error_code error = (enum error_code)http_tag(req, REQUEST_TAG_ERROR);
	const char *refusal = refusal_of(error);
	const struct principal *who = auth_principal(req);
	struct route_args args = {0};
	struct audit_event event = {.action = refusal ? refusal
	                                      : route ? route->audit
	                                              : NULL,
	                            .request_id = http_request_id(req)};

	if (!r->parts.audit || !event.action || (refusal && !take_turn(&r->refusals)))
		return;
	/* A caller without a valid key has no tenant. */
	if (error != ERR_UNAUTHENTICATED) {
		event.tenant = who->tenant;
		event.key_id = who->key_id;
	}
	event.object = object_of(req, route, &args);
	event.result = error                             ? error_text(error)
	               : done->status < HTTP_BAD_REQUEST ? "ok"
	                                                 : "failed";
	event.detail = detail_of(req, route ? route->path : "none",
	                         refusal ? TAKE(r->refusals.dropped, 0) : 0);
	audit_write(r->parts.audit, &event);
}
