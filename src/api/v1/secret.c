/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/reply.h"
#include "core/secret/secret.h"
#include "http/status.h"

static const char *const status_words[] = {"active", "unusable", NULL};
const struct fields v1_secret_query = QUERY_PAGE_FIELDS(status_words);

static const char *status_of(const struct router *r, const struct secret *secret)
{
	return status_words[secrets_is_usable(r->parts.secrets, secret) ? 0 : 1];
}

static json_t *view(const struct router *r, const struct secret *secret)
{
	return encode_secret(secret, status_of(r, secret));
}

void v1_secret_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const char *tenant = args->principal->tenant;
	const struct secret *secret = NULL;
	struct query_page page = {0};
	struct error err = {0};

	if (query_page(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	while ((secret = secrets_next(r->parts.secrets, tenant, secret)))
		if (query_page_wants(&page, status_of(r, secret)))
			query_page_add(&page, view(r, secret));
	reply_json(req, HTTP_OK, query_page_object(&page, "secrets", page.matched));
}

void v1_secret_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct secret *secret =
		secrets_find(r->parts.secrets, args->principal->tenant, args->id);
	struct error err = {0};

	if (secret) {
		reply_json(req, HTTP_OK, view(r, secret));
		return;
	}
	(void)error_set(&err, ERR_SECRET_NOT_FOUND, 0, "no secret has this name");
	reply_error(req, &err);
}

static struct secrets_done done_of(struct durable_reply *reply)
{
	struct identity_done done = durable_reply_done(reply);

	return (struct secrets_done){done.fn, done.ctx};
}

void v1_secret_set(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_decoded_secret struct decoded_secret d = {0};
	const struct secret *secret = NULL;
	struct durable_reply *reply;
	struct secret_spec spec;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	if (decode_secret(body, len, &d, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	spec = (struct secret_spec){.name = args->id,
	                            .hosts = d.hosts,
	                            .mode_given = d.mode_given,
	                            .mode = d.mode,
	                            .header = d.header,
	                            .format = d.format,
	                            .env = d.env,
	                            .value = d.value,
	                            .value_len = d.value_len};
	reply = durable_reply_new(req, HTTP_OK);
	if (secrets_set(r->parts.secrets, args->principal->tenant, &spec, done_of(reply), &secret,
	                &err) < 0) {
		durable_reply_started(reply, -1, &err);
		return;
	}
	http_set_note(req, secret->name);
	durable_reply_set_body(reply, view(r, secret));
}

void v1_secret_delete(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct durable_reply *reply = durable_reply_new(req, HTTP_NO_CONTENT);
	struct error err = {0};

	if (secrets_delete(r->parts.secrets, args->principal->tenant, args->id, done_of(reply),
	                   &err) < 0)
		durable_reply_started(reply, -1, &err);
	else
		http_set_note(req, args->id);
}
