/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mcp/internal.h"

#include "api/json/json.h"
#include "api/tools/resource.h"
#include "api/tools/sandbox_uri.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"
#include "core/run/language_check.h"
#include "core/run/run_service.h"
#include "core/session/session.h"
#include "core/template/templates.h"
#include "io/timer.h"
#include <string.h>

/*
 * Theory of operation. Core reports each change with its sandbox and file, or its template.
 * Subscriptions are indexed by that ("TENANT/sandbox:ID", "TENANT/template:ID"), so a change
 * without subscribers costs nothing. A directory changes with its files. Policies are rarely
 * reloaded: every subscription is checked.
 *
 * list_changed notifications are delayed and combined.
 */

#define CHANGES_US  (100 * 1000ULL)
#define WATCHED_LEN (TENANT_NAME_MAX + SANDBOX_URI_ID_MAX + 12)

/* NULL: never changes, or a policy. */
static const char *const groups[] = {
	[SANDBOX_URI_IS_FILE] = "sandbox", [SANDBOX_URI_IS_EXECUTION] = NULL,
	[SANDBOX_URI_IS_LOG] = "sandbox",  [SANDBOX_URI_IS_TEMPLATE] = "template",
	[SANDBOX_URI_IS_POLICY] = NULL,
};
static_assert(ARRAY_SIZE(groups) == SANDBOX_URI_KIND_COUNT, "every kind has its group");

static void watched_key(const char *tenant, const char *group, const char *id,
                        char ret_key[WATCHED_LEN])
{
	int r = str_format(ret_key, WATCHED_LEN, "%s/%s:%s", tenant, group, id);

	assert(r == 0); /* all are bounded */
	(void)r;
}

static struct mcp_subscription *find_subscription(const struct mcp_session *s, const char *uri)
{
	struct mcp_subscription *sub;

	LIST_FOREACH (sub, &s->subscriptions, struct mcp_subscription, node)
		if (str_equal(sub->uri, uri))
			return sub;
	return NULL;
}

static void index_subscription(struct mcp_subscription *sub, const char *key)
{
	struct mcp *mcp = sub->session->mcp;
	struct list *same = map_get(mcp->watched, key);

	if (!same) {
		int r;

		same = NEW(struct list);
		list_init(same);
		r = map_put(mcp->watched, key, same);
		assert(r == 0);
		(void)r;
	}
	sub->key = xstrdup(key);
	list_append(same, &sub->same);
}

void mcp_subscription_free(struct mcp_subscription *sub)
{
	struct mcp *mcp = sub->session->mcp;
	struct list *same = sub->key ? map_get(mcp->watched, sub->key) : NULL;

	list_remove(&sub->same);
	if (same && list_is_empty(same))
		free(map_remove(mcp->watched, sub->key));
	list_remove(&sub->node);
	sub->session->subscriptions_count--;
	free(sub->key);
	free(sub->uri);
	free(sub);
}

static void subscribe(struct mcp_session *s, const char *text, const struct sandbox_uri *uri)
{
	struct mcp_subscription *sub = NEW(struct mcp_subscription);
	char key[WATCHED_LEN];

	sub->session = s;
	sub->uri = xstrdup(text);
	list_init(&sub->same);
	list_append(&s->subscriptions, &sub->node);
	s->subscriptions_count++;
	if (!groups[uri->kind])
		return;
	watched_key(s->tenant, groups[uri->kind], uri->id, key);
	index_subscription(sub, key);
}

json_t *mcp_resources_subscribe(struct mcp_request *q, struct error *err)
{
	const char *text = mcp_request_text(q, "uri");
	struct mcp_session *s = q->session;
	struct sandbox_uri uri;

	/* Who may not read it must not learn when it changes. */
	if (resource_parse(text, &uri, err) < 0 || resource_check(&q->call, &uri, err) < 0)
		return NULL;
	if (find_subscription(s, text))
		return json_object();
	if (s->subscriptions_count >= MCP_SUBSCRIPTIONS_MAX) {
		(void)error_set(err, ERR_BUSY, 0, "too many subscriptions: end one");
		return NULL;
	}
	subscribe(s, text, &uri);
	return json_object();
}

json_t *mcp_resources_unsubscribe(struct mcp_request *q, struct error *err)
{
	const char *text = mcp_request_text(q, "uri");
	struct mcp_subscription *sub = text ? find_subscription(q->session, text) : NULL;

	if (sub)
		mcp_subscription_free(sub);
	if (text)
		return json_object();
	(void)error_set(err, ERR_INVALID, 0, "uri must be a string");
	return NULL;
}

static bool is_at_or_below(const char *at, const char *path)
{
	size_t len = strlen(at);

	return len == 0 || (strncmp(at, path, len) == 0 && (path[len] == '\0' || path[len] == '/'));
}

static bool concerns(const struct mcp_subscription *sub, enum session_change change,
                     const char *path)
{
	struct sandbox_uri uri;

	if (sandbox_uri_read(sub->uri, &uri) < 0)
		return false;
	if (change == SESSION_CHANGE_FILE)
		return uri.kind == SANDBOX_URI_IS_FILE && is_at_or_below(uri.path, path);
	return change == SESSION_CHANGE_LOG && uri.kind == SANDBOX_URI_IS_LOG;
}

static void notify_updated(const struct mcp_subscription *sub)
{
	json_t *params = json_object();

	json_set(params, "uri", json_string(sub->uri));
	mcp_session_notify(sub->session, "notifications/resources/updated", params);
}

static void schedule_list_changed(struct mcp_tenant *t)
{
	if (!t || t->list_changed)
		return;
	t->list_changed = true;
	timer_start(t->mcp->changes, CHANGES_US);
}

static void on_change(void *ctx, const struct session *session, enum session_change change,
                      const char *path)
{
	struct mcp *mcp = ctx;
	struct session_info info = {0};
	struct mcp_subscription *sub;
	char key[WATCHED_LEN];
	const struct list *same;

	session_info(session, &info);
	if (change == SESSION_CHANGE_LIST) {
		schedule_list_changed(map_get(mcp->by_tenant, info.tenant));
		return;
	}
	watched_key(info.tenant, "sandbox", info.id, key);
	same = map_get(mcp->watched, key);
	if (!same)
		return;
	for (struct list *n = same->next; n != same; n = n->next) {
		sub = LIST_ENTRY(n, struct mcp_subscription, same);
		if (concerns(sub, change, path))
			notify_updated(sub);
	}
}

static void notify_list_changed(const struct mcp_tenant *t)
{
	struct mcp_session *s;

	LIST_FOREACH (s, &t->sessions, struct mcp_session, same)
		mcp_session_notify(s, "notifications/resources/list_changed", NULL);
}

/* Languages are words in the schemas of tools. */
static void on_languages(void *ctx)
{
	struct mcp *mcp = ctx;

	mcp->tools_changed = true;
	timer_start(mcp->changes, CHANGES_US);
}

static void notify_tools_changed(struct mcp *mcp)
{
	struct mcp_session *s;

	if (!mcp->tools_changed)
		return;
	mcp->tools_changed = false;
	LIST_FOREACH (s, &mcp->sessions, struct mcp_session, node)
		mcp_session_notify(s, "notifications/tools/list_changed", NULL);
}

void mcp_flush_changes(void *ctx)
{
	struct mcp *mcp = ctx;
	struct mcp_tenant *t;

	notify_tools_changed(mcp);
	LIST_FOREACH (t, &mcp->tenants, struct mcp_tenant, node) {
		if (!t->list_changed)
			continue;
		t->list_changed = false;
		notify_list_changed(t);
	}
}

/* Built-in templates have no tenant and do not change. */
static void on_template(void *ctx, const struct template *t, bool listed)
{
	struct mcp *mcp = ctx;
	char key[WATCHED_LEN];
	const struct list *same;

	watched_key(t->tenant, "template", t->spec.id, key);
	same = map_get(mcp->watched, key);
	for (struct list *n = same ? same->next : NULL; n && n != same; n = n->next)
		notify_updated(LIST_ENTRY(n, struct mcp_subscription, same));
	if (listed)
		schedule_list_changed(map_get(mcp->by_tenant, t->tenant));
}

static void notify_policies(const struct mcp_session *s)
{
	struct mcp_subscription *sub;

	LIST_FOREACH (sub, &s->subscriptions, struct mcp_subscription, node)
		if (str_has_prefix(sub->uri, SANDBOX_URI_POLICY))
			notify_updated(sub);
}

void mcp_policies_changed(struct mcp *mcp)
{
	struct mcp_session *s;
	struct mcp_tenant *t;

	LIST_FOREACH (s, &mcp->sessions, struct mcp_session, node)
		notify_policies(s);
	LIST_FOREACH (t, &mcp->tenants, struct mcp_tenant, node)
		schedule_list_changed(t);
}

void mcp_watch_begin(struct mcp *mcp)
{
	const struct router_config *p = &mcp->router->parts;

	session_service_watch(p->sessions, &(struct session_watcher){mcp, on_change});
	if (p->templates) /* tests of the router have none */
		templates_watch(p->templates, &(struct templates_watcher){mcp, on_template});
	if (p->runs) /* likewise */
		language_checks_watch(run_service_language_checks(p->runs), on_languages, mcp);
}

void mcp_watch_end(struct mcp *mcp)
{
	session_service_watch(mcp->router->parts.sessions, NULL);
	if (mcp->router->parts.templates)
		templates_watch(mcp->router->parts.templates, NULL);
	if (mcp->router->parts.runs)
		language_checks_watch(run_service_language_checks(mcp->router->parts.runs), NULL,
		                      NULL);
}
