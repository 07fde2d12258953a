/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"
#include "api/internal.h"

#include "base/clock.h"
#include "base/str.h"
#include "core/observe/audit.h"
#include <jansson.h>
#include <string.h>

/*
 * Theory of operation. What core does it tells the audit log itself; here is told what only a
 * request knows: that somebody was turned away, and that somebody changed who may do what. Who is
 * turned away may be anybody, as often as they like: beyond REFUSALS_PER_SECOND they are only
 * counted, and the next one that is told says how many there were.
 */

#define V1                  "/api/v1"
#define REFUSALS_PER_SECOND 20
#define ACTION_LEN          32

static const struct {
	const char *prefix, *noun;
} nouns[] = {
	{V1 "/keys", "key"},
	{V1 "/tenants", "tenant"},
	{V1 "/templates", "template"},
	{V1 "/policies", "policy"},
};

static const struct {
	const char *method, *verb;
} verbs[] = {
	{"POST", "create"},
	{"PUT", "change"},
	{"PATCH", "change"},
	{"DELETE", "delete"},
};

static const char *find_noun(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(nouns); i++)
		if (str_has_prefix(path, nouns[i].prefix))
			return nouns[i].noun;
	return NULL;
}

static const char *find_verb(const char *method)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (str_equal(method, verbs[i].method))
			return verbs[i].verb;
	return NULL;
}

/* "key.create" for a request that changes something of ours. Return: whether it does. */
static bool name_change(const struct route *route, char ret_action[ACTION_LEN])
{
	const char *noun = route ? find_noun(route->path) : NULL;
	const char *verb = route ? find_verb(route->method) : NULL;

	return noun && verb && str_format(ret_action, ACTION_LEN, "%s.%s", noun, verb) == 0;
}

static const char *refusal_of(enum error_code error)
{
	if (error == ERR_UNAUTHENTICATED)
		return "auth.failure";
	return error == ERR_DENIED || error == ERR_FORBIDDEN || error == ERR_NO_SCOPE
	               ? "request.refuse"
	               : NULL;
}

/* Return: whether there is room for one more in this second. */
static bool take_turn(struct refusals *r)
{
	uint64_t second = clock_us() / USEC_PER_SEC;

	if (second != r->second) {
		r->second = second;
		r->told = 0;
	}
	if (r->told >= REFUSALS_PER_SECOND) {
		r->untold++;
		return false;
	}
	r->told++;
	return true;
}

static json_t *detail_of(const struct http_request *req, const char *route, uint64_t untold)
{
	json_t *detail = json_pack("{s:s, s:s}", "method", http_method(req), "route", route);

	if (detail && untold > 0)
		(void)json_object_set_new(detail, "untold_before",
		                          json_integer((json_int_t)untold));
	return detail;
}

/* What it made has an id that no path told. Return: NULL: it is about nothing in particular. */
static const char *object_of(const struct http_request *req, const struct route *route,
                             struct route_args *args)
{
	const char *note = http_note(req);

	if (note || !route || !router_match(route->path, http_path(req), args))
		return note;
	return args->id[0] ? args->id : NULL;
}

void audited_refusal(struct router *r, const struct principal *who, const char *request_id,
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

void audited_done(struct router *r, const struct http_request *req, const struct http_done *done)
{
	const struct route *route = (const struct route *)http_tag(req, REQUEST_TAG_ROUTE);
	enum error_code error = (enum error_code)http_tag(req, REQUEST_TAG_ERROR);
	const char *refusal = refusal_of(error);
	struct route_args args = {0};
	char action[ACTION_LEN];
	const struct principal *who = auth_principal(req);
	struct audit_event event = {.action = action, .request_id = http_request_id(req)};

	if (!r->parts.audit || (refusal && !take_turn(&r->refusals)))
		return;
	if (!refusal && !name_change(route, action))
		return;
	if (refusal)
		event.action = refusal;
	/* Who has no valid key is nobody in particular. */
	if (error != ERR_UNAUTHENTICATED) {
		event.tenant = who->tenant;
		event.key_id = who->key_id;
	}
	event.object = object_of(req, route, &args);
	event.result = error ? error_text(error) : done->status < 400 ? "ok" : "failed";
	event.detail = detail_of(req, route ? route->path : "none",
	                         refusal ? TAKE(r->refusals.untold, 0) : 0);
	audit_write(r->parts.audit, &event);
}
