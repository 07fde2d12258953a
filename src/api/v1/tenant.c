/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/reply.h"
#include "core/identity/identity.h"
#include "core/policy/policies.h"
#include "core/run/run.h"
#include "http/status.h"

void v1_identity(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct principal *p = args->principal;
	const struct tenant *t =
		r->parts.tenants ? tenants_find(r->parts.tenants, p->tenant) : NULL;

	reply_json(req, HTTP_OK, encode_principal(p, t));
}

/* NULL: the request was answered. */
static struct tenant *find_tenant(struct router *r, struct http_request *req,
                                  const struct route_args *args)
{
	struct tenant *t = args->id[0] ? tenants_find(r->parts.tenants, args->id) : NULL;
	struct error err = {0};

	if (!t) {
		(void)error_set(&err, ERR_TENANT_NOT_FOUND, 0, "no tenant has this name");
		reply_error(req, &err);
	}
	return t;
}

static const char *const status_words[] = {"active", NULL};
const struct fields v1_tenant_query = QUERY_PAGE_FIELDS(status_words);

void v1_tenant_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct query_page page = {0};
	struct error err = {0};
	const struct tenant *t;

	if (query_page(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	for (t = tenants_at(r->parts.tenants, query_page_begin(&page));
	     t && !query_page_is_done(&page); t = tenants_next(r->parts.tenants, t))
		if (query_page_wants(&page, status_words[0]))
			query_page_add(&page, encode_tenant(t));
	reply_json(req, HTTP_OK,
	           query_page_object(&page, "tenants", tenants_count(r->parts.tenants)));
}

void v1_tenant_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct tenant *t = find_tenant(r, req, args);

	if (t)
		reply_json(req, HTTP_OK, encode_tenant(t));
}

/* Given over current. Borrowed. */
static struct tenant_settings merge_settings(const struct decoded_tenant *given,
                                             const struct tenant *now)
{
	struct tenant_settings settings = {.name = given->name, .policy = now ? now->policy : ""};

	if (given->policy)
		settings.policy = given->policy;
	for (int i = 0; i < QUOTA_COUNT; i++) {
		settings.quotas[i] = now ? now->quotas[i] : QUOTA_UNSET;
		if (given->has_quota[i])
			settings.quotas[i] = given->quotas[i];
	}
	return settings;
}

/* An unknown policy would refuse every request of the tenant. "": the default. */
static int check_policy(const struct router *r, const struct decoded_tenant *given,
                        struct error *err)
{
	const struct policies *all = run_service_policies(r->runs);

	if (!all || !given->policy || !given->policy[0] || policies_find(all, given->policy))
		return 0;
	return error_field(err, "policy", "no such policy");
}

void v1_tenant_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_decoded_tenant struct decoded_tenant decoded = {0};
	struct tenant_settings settings;
	struct durable_reply *reply;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	(void)args;
	if (decode_tenant(body, len, true, &decoded, &err) < 0 ||
	    check_policy(r, &decoded, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	settings = merge_settings(&decoded, NULL);
	reply = durable_reply_new(req, HTTP_CREATED);
	if (identity_create_tenant(r->parts.identity, &settings, durable_reply_done(reply), &err) <
	    0)
		durable_reply_started(reply, -1, &err);
	else {
		http_set_note(req, decoded.name);
		durable_reply_set_body(reply,
		                       encode_tenant(tenants_find(r->parts.tenants, decoded.name)));
	}
}

void v1_tenant_change(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_decoded_tenant struct decoded_tenant decoded = {0};
	struct tenant *t = find_tenant(r, req, args);
	struct tenant_settings settings;
	char policy[TENANT_NAME_MAX + 1];
	struct durable_reply *reply;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	if (!t)
		return;
	if (decode_tenant(body, len, false, &decoded, &err) < 0 ||
	    check_policy(r, &decoded, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	/* The settings must not point into the tenant that they change. */
	(void)snprintf(policy, sizeof(policy), "%s", t->policy);
	settings = merge_settings(&decoded, t);
	if (!decoded.policy)
		settings.policy = policy;
	reply = durable_reply_new(req, HTTP_OK);
	if (identity_set_tenant(r->parts.identity, t, &settings, durable_reply_done(reply), &err) <
	    0)
		durable_reply_started(reply, -1, &err);
	else
		durable_reply_set_body(reply, encode_tenant(t));
}

void v1_tenant_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct tenant *t = find_tenant(r, req, args);
	struct durable_reply *reply;
	struct error err = {0};
	json_t *body;

	if (!t)
		return;
	reply = durable_reply_new(req, HTTP_OK);
	if (identity_delete_tenant(r->parts.identity, t, durable_reply_done(reply), &err) < 0) {
		durable_reply_started(reply, -1, &err);
		return;
	}
	body = json_object();
	json_set(body, "message", json_string("The tenant is deleted."));
	json_set(body, "name", json_string(args->id));
	durable_reply_set_body(reply, body);
}
