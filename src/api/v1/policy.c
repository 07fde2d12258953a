/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/op/language.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/identity/scope.h"
#include "core/language/runners.h"
#include "core/policy/policies.h"
#include "core/policy/policy.h"
#include "core/template/templates.h"
#include "http/status.h"
#include <string.h>

#define VALUE_LEN 64

void v1_policy_list(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct policies *all = run_service_policies(r->runs);
	json_t *body = json_object(), *list = json_array();
	const struct policy *policy;

	for (size_t i = 0; all && (policy = policies_at(all, i)); i++)
		if (encode_policy_is_seen(r->runs, args->principal, policy))
			json_append(list, encode_policy_head(r->runs, args->principal, policy));
	json_set(body, "policies", list);
	reply_json(req, HTTP_OK, body);
}

void v1_policy_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct policies *all = run_service_policies(r->runs);
	const struct policy *policy = all && args->id[0] ? policies_find(all, args->id) : NULL;
	struct error err = {0};

	if (!policy || !encode_policy_is_seen(r->runs, args->principal, policy)) {
		(void)error_set(&err, ERR_NOT_FOUND, 0, "no policy has this name");
		reply_error(req, &err);
		return;
	}
	reply_json(req, HTTP_OK, encode_policy(r->runs, args->principal, policy));
}

static json_t *rule_object(const struct policy_rule *rule)
{
	/* "program" could be read as the one that runs. */
	const char *by = rule->by == POLICY_BY_PROGRAM ? "built-in rule" : policy_by_name(rule->by);
	json_t *j;
	char words[160];

	if (rule->by == POLICY_BY_NOBODY)
		return json_null();
	j = json_object();
	(void)snprintf(words, sizeof(words), "%s%s%s: %s", by, rule->policy ? " " : "",
	               rule->policy ? rule->policy : "", rule->path);
	json_set(j, "by", json_string(policy_by_name(rule->by)));
	json_set(j, "policy", encode_text(rule->policy));
	json_set(j, "path", encode_text(rule->path));
	json_set(j, "line", rule->line ? json_integer(rule->line) : json_null());
	json_set(j, "text", encode_text(words));
	return j;
}

static json_t *seconds(uint64_t us)
{
	if (us % USEC_PER_SEC == 0)
		return json_integer((json_int_t)(us / USEC_PER_SEC));
	return json_real((double)us / (double)USEC_PER_SEC);
}

static json_t *size(uint64_t bytes)
{
	char value[VALUE_LEN];

	format_size(bytes, value, sizeof(value));
	return json_string(value);
}

static json_t *cores(uint64_t millicores)
{
	char value[VALUE_LEN];

	format_cpu(millicores, value, sizeof(value));
	return json_string(value);
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static const struct {
	const char *name;
	json_t *(*show)(uint64_t value);
	bool of_session, of_execution;
} limits[] = {
	[POLICY_TIMEOUT] = {"timeout", seconds, false, true},
	[POLICY_MEMORY] = {"memory", size, true, true},
	[POLICY_DISK] = {"disk", size, true, true},
	[POLICY_CPU] = {"cpu", cores, true, true},
	[POLICY_PROCESSES] = {"max_processes", number, true, true},
	[POLICY_OUTPUT] = {"max_output", size, false, true},
	[POLICY_IDLE] = {"timeout", seconds, true, false},
	[POLICY_LIFETIME] = {"lifetime", seconds, true, false},
	[POLICY_BACKGROUND] = {"timeout", seconds, false, true},
};
static_assert(ARRAY_SIZE(limits) == POLICY_LIMIT_COUNT, "every limit has a row");

static json_t *grant_object(json_t *asked, json_t *granted, const struct policy_rule *rule)
{
	json_t *j = json_object();

	json_set(j, "requested", asked);
	json_set(j, "granted", granted);
	json_set(j, "rule", rule_object(rule));
	return j;
}

static json_t *limits_object(const struct policy_decision *d, bool session)
{
	json_t *j = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct policy_grant *g = &d->grants[i];

		/* An execution has one of two limits on its time. */
		if ((session ? !limits[i].of_session : !limits[i].of_execution) ||
		    g->rule.by == POLICY_BY_NOBODY)
			continue;
		json_set(j, limits[i].name,
		         grant_object(g->asked ? limits[i].show(g->asked) : json_null(),
		                      limits[i].show(g->granted), &g->rule));
	}
	return j;
}

enum question_kind {
	KIND_EXECUTE,
	KIND_SESSION
};

struct question {
	enum question_kind kind;
	struct decoded_run exec;
	struct session_request request;
};

static void question_done(struct question *q)
{
	decoded_run_done(&q->exec);
	session_request_done(&q->request);
}

static json_t *texts_array(char *const *texts, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_append(list, encode_text(texts[i]));
	return list;
}

static json_t *names_array(char *const *names)
{
	return texts_array(names, str_list_count(names));
}

/* The keys of a policy that hold for the network of the box. */
static json_t *reach_object(const struct config *config, const struct question *q,
                            const struct policy_decision *d)
{
	char *const *secrets =
		q->kind == KIND_SESSION ? q->request.secrets : q->exec.request.secrets;
	const struct policy_reach *reach = &d->reach;
	const struct box_rules *rules = d->spec.rules;
	char *const *hosts =
		q->kind == KIND_SESSION ? q->request.network_allow : q->exec.request.network_allow;
	json_t *j = json_object();

	if (d->spec.network == BOX_NETWORK_ALLOWLIST) {
		json_set(j, "allow",
		         grant_object(hosts ? names_array(hosts) : json_null(),
		                      texts_array(rules->texts, rules->count), &reach->allow_rule));
		json_set(j, "secrets",
		         grant_object(secrets ? names_array(secrets) : json_null(),
		                      names_array(rules->secrets), &reach->secrets_rule));
		json_set(j, "intercept",
		         grant_object(json_null(), json_boolean(reach->intercept),
		                      &reach->intercept_rule));
	}
	if (d->spec.network == BOX_NETWORK_BRIDGE) {
		cleanup_free char **ranges = policy_ranges(config, d->spec.ranges);

		json_set(j, "ranges",
		         grant_object(json_null(), names_array(ranges), &reach->ranges_rule));
	}
	return j;
}

static json_t *grants_object(const struct config *config, const struct question *q,
                             const struct policy_explanation *e)
{
	const struct policy_decision *d = &e->decision;
	const char *language =
		q->kind == KIND_SESSION ? q->request.language : q->exec.request.language;
	const char *engine = q->kind == KIND_SESSION ? q->request.engine : q->exec.request.engine;
	bool asked =
		q->kind == KIND_SESSION ? q->request.network_asked : q->exec.request.network_asked;
	const char *network = box_network_name(d->spec.network);
	json_t *j = json_object();

	json_set(j, "language",
	         grant_object(encode_text(language), encode_text(d->runner->name), &d->language));
	json_set(j, "network",
	         grant_object(asked ? encode_text(network) : json_null(), encode_text(network),
	                      &d->network));
	json_set(j, "engine",
	         grant_object(encode_text(engine), json_string(d->spec.engine), &d->engine));
	json_set(j, "reach", reach_object(config, q, d));
	json_set(j, "on_overflow",
	         grant_object(json_null(), json_string(d->kill_on_overflow ? "kill" : "truncate"),
	                      &d->overflow));
	json_set(j, "isolation",
	         grant_object(json_null(), encode_layers(d->spec.required_layers), &d->isolation));
	json_set(j, "limits", limits_object(d, q->kind == KIND_SESSION));
	return j;
}

static json_t *view_explanation(const struct config *config, const struct question *q,
                                const struct policy_explanation *e, const char *request_id)
{
	json_t *j = json_object();

	json_set(j, "kind", json_string(q->kind == KIND_SESSION ? "session" : "execute"));
	json_set(j, "allowed", json_boolean(e->allowed));
	json_set(j, "policy", encode_text(e->stack.own ? e->stack.own->name : NULL));
	json_set(j, "chosen", encode_text(e->stack.chosen ? e->stack.chosen->name : NULL));
	json_set(j, "grants", e->allowed ? grants_object(config, q, e) : json_null());
	json_set(j, "refusal", e->allowed ? json_null() : reply_error_object(&e->err, request_id));
	json_set(j, "rule", rule_object(&e->refused));
	return j;
}

static const char *const kinds[] = {"execute", "session", NULL};

/* clang-format off */
const struct fields v1_explain_fields = {
	.name = "ExplainRequest",
	.description = "An ExecuteRequest whose code is optional, or a SessionRequest; `kind` says which.",
	.flags = FIELDS_OPEN,
	.rows = (const struct field[]){
		{"kind", FIELD_ENUM, AT(struct question, kind), .words = kinds, .schema = "{\"default\": \"execute\"}"},
		FIELDS_END,
	},
};
/* clang-format on */

/* "kind" selects the table for the rest. Without code: about any. */
static int read_question(const struct router *r, const char *body, size_t len,
                         struct question *ret_question, struct error *err)
{
	const struct decode_limits decode = {.max_code_bytes = r->config->max_code_bytes};
	cleanup_json json_t *object = json_read_object(body, len, err);

	if (!object || fields_decode(&v1_explain_fields, object, NULL, ret_question, err) < 0)
		return -1;
	(void)json_object_del(object, "kind");
	if (ret_question->kind == KIND_SESSION)
		return decode_session_object(object, NULL, &ret_question->request, err);
	if (!json_object_get(object, "code") && !json_object_get(object, "handler_code"))
		json_set(object, "code", json_string("\n"));
	if (decode_exec_object(object, &decode, &ret_question->exec, err) < 0)
		return -1;
	return op_language_choose(r, &ret_question->exec, "python", err);
}

void v1_policy_explain(struct router *r, struct http_request *req, const struct route_args *args)
{
	attr_cleanup(question_done) struct question q = {0};
	attr_cleanup(policy_explanation_done) struct policy_explanation e = {0};
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	if (read_question(r, body, len, &q, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	q.exec.request.tenant = q.request.tenant = args->principal->tenant;
	if (q.kind == KIND_SESSION)
		session_explain(r->parts.sessions, &q.request, &e);
	else if (run_request_find_template(r->parts.templates, args->principal->tenant,
	                                   &q.exec.request, &e.err) == 0)
		run_service_explain(r->runs, &q.exec.request, &e);
	reply_json(req, HTTP_OK, view_explanation(r->config, &q, &e, http_request_id(req)));
}
