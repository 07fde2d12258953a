/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/tools/sandbox_uri.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/policy/policies.h"
#include "core/run/run.h"
#include "core/session/session.h"
#include "core/template/templates.h"
#include "core/template/toolchains.h"
#include <string.h>

#define VALUES_MAX 100

struct guess {
	struct mcp_request *q;
	const char *typed;
	json_t *values;
	size_t total;
};

static void offer(struct guess *g, const char *word)
{
	if (!str_has_prefix(word, g->typed))
		return;
	if (g->total++ < VALUES_MAX)
		(void)!json_array_append_new(g->values, json_text(word, strlen(word)));
}

static void offer_languages(struct guess *g)
{
	const struct router *router = g->q->call.router;
	const struct toolchains *toolchains = run_service_toolchains(router->runs);
	const struct runner *r;

	for (size_t i = 0; (r = runners_at(router->parts.runners, i)); i++)
		if (toolchains_has(toolchains, NULL, r))
			offer(g, r->name);
}

static void offer_sandboxes(struct guess *g)
{
	struct mcp_session *s = g->q->session;
	const struct session *session = session_at(s->mcp->router->parts.sessions, s->tenant, 0);

	for (; session; session = session_older(session)) {
		struct session_info info = {0};

		session_info(session, &info);
		if (info.state != SESSION_TERMINATED && info.state != SESSION_FAILED)
			offer(g, info.id);
	}
}

static void offer_templates(struct guess *g)
{
	struct mcp_session *s = g->q->session;
	const struct templates *all = s->mcp->router->parts.templates;
	const struct template *t;

	for (t = templates_at(all, s->tenant, 0); t; t = templates_next(all, s->tenant, t))
		offer(g, t->spec.id);
}

static void offer_policies(struct guess *g)
{
	const struct policies *all = run_service_policies(g->q->call.router->runs);
	const struct policy *policy;

	for (size_t i = 0; all && (policy = policies_at(all, i)); i++)
		if (encode_policy_is_seen(g->q->call.router->runs, g->q->call.principal, policy))
			offer(g, policy->name);
}

static void offer_streams(struct guess *g)
{
	offer(g, "stdout");
	offer(g, "stderr");
}

/* The first match counts. */
static const struct {
	const char *reference, *argument;
	void (*offer)(struct guess *g);
} rows[] = {
	{SANDBOX_URI_FILE, "id", offer_sandboxes},
	{SANDBOX_URI_LOG, "id", offer_sandboxes},
	{SANDBOX_URI_TEMPLATE, "id", offer_templates},
	{SANDBOX_URI_POLICY, "name", offer_policies},
	{SANDBOX_URI_EXECUTION, "stream", offer_streams},
	{"analyse_data_file", "sandbox_id", offer_sandboxes},
	{"debug_program", "language", offer_languages},
	{"write_and_run_tests", "language", offer_languages},
};

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

/* "analyse_data_file" or "sandbox://{id}/{path}"; NULL: neither. */
static const char *reference_of(const json_t *ref)
{
	const char *type = text_of(ref, "type");

	if (type && str_equal(type, "ref/prompt"))
		return text_of(ref, "name");
	return type && str_equal(type, "ref/resource") ? text_of(ref, "uri") : NULL;
}

json_t *mcp_complete(struct mcp_request *q, struct error *err)
{
	const json_t *argument = json_object_get(q->params, "argument");
	const char *reference = reference_of(json_object_get(q->params, "ref"));
	const char *name = text_of(argument, "name");
	struct guess g = {.q = q, .typed = text_of(argument, "value")};
	json_t *result, *completion;

	if (!reference || !name || !g.typed) {
		(void)error_set(err, ERR_INVALID, 0, "ref and argument must say what to complete");
		return NULL;
	}
	g.values = json_array();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (str_has_prefix(reference, rows[i].reference) &&
		    str_equal(name, rows[i].argument)) {
			rows[i].offer(&g);
			break;
		}
	completion = json_object();
	json_set(completion, "values", g.values);
	json_set(completion, "total", json_integer((json_int_t)g.total));
	json_set(completion, "hasMore", json_boolean(g.total > VALUES_MAX));
	result = json_object();
	json_set(result, "completion", completion);
	return result;
}
