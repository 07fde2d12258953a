/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/auth.h"
#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/reply.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/identity/identity.h"
#include "http/status.h"

static const char *const status_words[] = {"active", "revoked", "expired", NULL};

struct key_query {
	struct query_page page;
	const char *tenant;
};

static const struct field query_rows[] = {
	{"tenant", FIELD_STRING, AT(struct key_query, tenant),
         .description = "Only keys of this tenant."},
	QUERY_STATUS_ROW(status_words),
	QUERY_PAGE_ROWS,
	FIELDS_END,
};
const struct fields v1_key_query = {.rows = query_rows};

/* NULL: the request was answered. */
static struct identity_key *find_key(struct router *r, struct http_request *req,
                                     const struct route_args *args)
{
	struct identity_key *key =
		args->id[0] ? identity_find_key(r->parts.identity, args->id) : NULL;
	struct error err = {0};

	if (!key) {
		(void)error_set(&err, ERR_KEY_NOT_FOUND, 0, "no key has this id");
		reply_error(req, &err);
	}
	return key;
}

void v1_key_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct identity_key *key;
	struct key_query query = {0};
	struct error err = {0};

	if (query_page(req, args->query, &query.page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	/* At most ten thousand, and rarely requested. */
	for (key = identity_key_at(r->parts.identity, 0); key;
	     key = identity_key_next(r->parts.identity, key)) {
		struct identity_key_info info;

		identity_key_info(key, &info);
		if ((!query.tenant || str_equal(query.tenant, info.tenant)) &&
		    query_page_wants(&query.page, encode_key_status(&info)))
			query_page_add(&query.page, encode_key(&info));
	}
	reply_json(req, HTTP_OK, query_page_object(&query.page, "keys", query.page.matched));
}

void v1_key_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct identity_key *key = find_key(r, req, args);
	struct identity_key_info info;

	if (!key)
		return;
	identity_key_info(key, &info);
	reply_json(req, HTTP_OK, encode_key(&info));
}

/* The only response with the secret. */
static json_t *view_new(struct identity *identity, const struct key *secret)
{
	struct identity_key_info info;
	char text[KEY_TEXT_LEN + 1];
	json_t *body;

	identity_key_info(identity_find_key(identity, secret->id), &info);
	key_format(secret, text);
	body = encode_key(&info);
	json_set(body, "key", json_string(text));
	explicit_bzero(text, sizeof(text));
	return body;
}

void v1_key_create(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_decoded_key struct decoded_key decoded = {0};
	cleanup_key struct key secret = {0};
	struct identity_key_request request;
	struct durable_reply *reply;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	(void)args;
	if (decode_key(body, len, &decoded, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	request = (struct identity_key_request){
		.tenant = decoded.tenant,
		.name = decoded.name,
		.scopes = decoded.scopes ? decoded.scopes : SCOPES_USER,
		.expires_ms =
			decoded.expires_us ? clock_real_ms() + decoded.expires_us / USEC_PER_MS : 0,
	};
	reply = durable_reply_new(req, HTTP_CREATED);
	if (identity_create_key(r->parts.identity, &request, durable_reply_done(reply), &secret,
	                        &err) < 0)
		durable_reply_started(reply, -1, &err);
	else {
		http_set_note(req, secret.id);
		router_keys_added(r);
		durable_reply_set_body(reply, view_new(r->parts.identity, &secret));
	}
}

static const char *locked_warning(const struct identity *identity)
{
	return identity_trusts_socket(identity)
	               ? "no valid key is left: TCP answers every request with 401 until you "
	                 "create one ('millibox key create' or POST /api/v1/keys at the Unix "
	                 "socket)"
	               : "no valid key is left: the daemon answers every request with 401 until "
	                 "you stop it and create one ('milliboxd --create-key')";
}

void v1_key_revoke(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct identity_key *key = find_key(r, req, args);
	struct identity_key_info info;
	struct durable_reply *reply;
	struct error err = {0};

	if (!key)
		return;
	reply = durable_reply_new(req, HTTP_OK);
	if (identity_revoke_key(r->parts.identity, key, durable_reply_done(reply), &err) < 0) {
		durable_reply_started(reply, -1, &err);
		return;
	}
	router_keys_changed(r, req);
	identity_key_info(key, &info);
	if (identity_is_locked(r->parts.identity))
		json_append(reply_warnings(req), json_string(locked_warning(r->parts.identity)));
	durable_reply_set_body(reply, encode_key(&info));
}
