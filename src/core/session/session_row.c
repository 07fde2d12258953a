/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_row.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/session/session_internal.h"
#include "core/store/store_internal.h"
#include "core/template/images.h"
#include "core/template/template.h"
#include "core/template/template_row.h"
#include "json/json_dump.h"

#define ROW_MAX     (16u << 20)
#define HISTORY_LEN (SESSION_HISTORY_MAX * 48)

static void encode_history(const struct session *session, char ret_text[HISTORY_LEN])
{
	size_t count = session->steps_count, used = 0;

	ret_text[0] = '\0';
	for (size_t i = count < SESSION_HISTORY_MAX ? 0 : count - SESSION_HISTORY_MAX; i < count;
	     i++) {
		const struct session_step *step = &session->steps[i % SESSION_HISTORY_MAX];

		used += (size_t)snprintf(ret_text + used, HISTORY_LEN - used, "%s %" PRIu64 "\n",
		                         session_state_name(step->state), step->at_ms);
	}
}

static char *encode_env(char *const *env, size_t *ret_len)
{
	size_t len = 0;
	char *bytes, *at;

	for (char *const *v = env; *v; v++)
		len += strlen(*v) + 1;
	at = bytes = xmalloc(len + 1);
	for (char *const *v = env; *v; v++) {
		size_t size = strlen(*v) + 1;

		memcpy(at, *v, size);
		at += size;
	}
	*ret_len = len;
	return bytes;
}

/* A live session keeps its template although the template may change. Ended sessions, which may be
 * many, keep neither this nor their variables. */
#define WITHOUT_MADE_OF "json_remove(spec, '$.made_of', '$.made_of_ms')"
/* Only the network changes while a session lives. */
#define WITH_NETWORK                                                                               \
	"json_set(sessions.spec, '$.network', json_extract(excluded.spec, '$.network'))"

static json_t *encode_names(char *const *names)
{
	json_t *list = json_array();

	for (; *names; names++)
		(void)json_array_append_new(list, json_string(*names));
	return list;
}

static char *encode_spec(const struct session *session)
{
	struct session_info info = {0};
	const struct box_limits *l = &session->spec.limits;
	const struct template *t = session->template;
	bool keeps_template = !session->ended_ms && t && !template_is_builtin(t);
	cleanup_free char *made_of = keeps_template ? template_row_write_spec(&t->spec) : NULL;
	char *text;
	json_t *j;

	session_info(session, &info);
	j = json_pack("{s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:s*, s:s*, s:s*, s:s*, s:i, "
	              "s:s*, s:s}",
	              "memory", (json_int_t)l->memory_bytes, "workspace",
	              (json_int_t)l->workspace_bytes, "tmp", (json_int_t)l->tmp_bytes, "shm",
	              (json_int_t)l->shm_bytes, "workspace_inodes", (int)l->workspace_inodes,
	              "tmp_inodes", (int)l->tmp_inodes, "pids", (int)l->pids, "cpu",
	              (int)l->cpu_millicores, "nofile", (int)l->nofile, "template",
	              info.template_id, "policy", info.policy, "key_id", info.key_id, "request_id",
	              info.request_id, "network", (int)info.network, "root", session->spec.root,
	              "engine", info.engine);
	assert(j); /* numbers and names, which are ASCII */
	if (session->mcp)
		(void)json_object_set_new(j, "mcp", encode_names(session->mcp));
	if (session->network_allow)
		(void)json_object_set_new(j, "network_allow", encode_names(session->network_allow));
	if (session->image)
		(void)json_object_set_new(j, "image_bytes",
		                          json_integer((json_int_t)session->image->bytes));
	if (*session->secrets)
		(void)json_object_set_new(j, "secrets", encode_names(session->secrets));
	if (keeps_template)
		(void)json_object_update_new(j, json_pack("{s:s, s:I}", "made_of", made_of,
		                                          "made_of_ms", (json_int_t)t->updated_ms));
	text = json_dump_text(j, JSON_COMPACT);
	assert(text);
	json_decref(j);
	return text;
}

static struct store *store_of(const struct session *session)
{
	return session->service ? session->service->config.store : NULL;
}

/* An unfinished write and its waiters. */
struct session_write {
	struct session *session; /* NULL: freed */
	struct store_orphan orphan;
	struct store *store;
	struct db_job *job;
	struct list waiting; /* struct session_waiter, owned */
};

struct session_waiter {
	struct list node;
	struct store_task *task;
};

static void on_written(void *ctx, const struct error *err)
{
	struct session_write *w = ctx;
	struct session *session = w->session;
	struct store *s = w->store;
	bool again = store_was_written(s, err);
	struct session_waiter *waiter;

	if (session)
		session->writing = NULL;
	if (session && again && list_is_empty(&session->dirty.node)) {
		list_append(&s->sessions, &session->dirty.node);
		store_wants_flush(s, STORE_RETRY_US);
	}
	LIST_FOREACH (waiter, &w->waiting, struct session_waiter, node) {
		list_remove(&waiter->node);
		store_task_done(waiter->task, err);
		free(waiter);
	}
	list_remove(&w->orphan.node);
	free(w);
}

/* The waiters' tasks are the store's. */
static void free_orphan(struct store_orphan *orphan)
{
	struct session_write *w = CONTAINER_OF(orphan, struct session_write, orphan);
	struct session_waiter *waiter;

	LIST_FOREACH (waiter, &w->waiting, struct session_waiter, node)
		free(waiter);
	free(w);
}

static const char *engine_of(const struct session *session)
{
	struct session_info info = {0};

	session_info(session, &info);
	return info.engine;
}

static int write_item(struct store_item *item)
{
	struct session *session = CONTAINER_OF(item, struct session, dirty);
	struct store *s = store_of(session);
	cleanup_free char *spec = encode_spec(session);
	char history[HISTORY_LEN];
	size_t env_len;
	cleanup_free char *env = encode_env(session->env, &env_len);
	struct session_write *w = NEW(struct session_write), *before = session->writing;
	struct session_waiter *waiter;
	struct error err = {0};

	w->session = session;
	w->store = s;
	list_init(&w->orphan.node);
	list_init(&w->waiting);
	encode_history(session, history);
	w->job = db_write(
		s->db,
		&DB_SQL("INSERT INTO sessions (tenant, id, created_ms, updated_ms, active_ms,"
	                " ended_ms, state, mode, language, agent_id, box_id, driver, reason,"
	                " executions, idle_us, lifetime_us, history, env, spec, dependencies,"
	                " notes)"
	                " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
	                " ?15, ?16, ?17, ?18, ?19, ?20, ?21)"
	                " ON CONFLICT (tenant, id, created_ms) DO UPDATE SET"
	                " updated_ms = excluded.updated_ms, active_ms = excluded.active_ms,"
	                " ended_ms = excluded.ended_ms, state = excluded.state,"
	                " language = excluded.language, box_id = excluded.box_id,"
	                " reason = excluded.reason, executions = excluded.executions,"
	                " idle_us = excluded.idle_us, history = excluded.history,"
	                " dependencies = excluded.dependencies, notes = excluded.notes,"
	                " env = excluded.env, spec = CASE WHEN excluded.ended_ms IS NULL"
	                " THEN " WITH_NETWORK " ELSE " WITHOUT_MADE_OF " END",
	                DB_TEXT(session->tenant), DB_TEXT(session->id), DB_INT(session->created_ms),
	                DB_INT(session->updated_ms), DB_INT(session->active_ms),
	                store_time(session->ended_ms), DB_TEXT(session_state_name(session->state)),
	                DB_TEXT(session_mode_name(session->mode)), DB_TEXT(session->language),
	                DB_TEXT(session->agent_id),
	                DB_TEXT(session->spec.id[0] ? session->spec.id : NULL),
	                DB_TEXT(engine_of(session)), DB_TEXT(session->reason),
	                DB_INT(session->executions), DB_INT(session->idle_us),
	                DB_INT(session->lifetime_us), DB_TEXT(history), DB_BYTES(env, env_len),
	                DB_TEXT(spec), DB_TEXT(session->dependencies), DB_TEXT(session->notes)),
		1, on_written, w, &err);
	if (!w->job) {
		free(w);
		return -1;
	}
	if (before) { /* superseded */
		LIST_FOREACH (waiter, &before->waiting, struct session_waiter, node) {
			list_remove(&waiter->node);
			list_append(&w->waiting, &waiter->node);
		}
		db_forget(before->job);
		free(before);
	}
	session->writing = w;
	list_remove(&session->dirty.node);
	return 0;
}

void session_row_changed(struct session *session)
{
	struct store *s = store_of(session);

	if (!s || session->deleted || !list_is_empty(&session->dirty.node))
		return;
	session->dirty.write = write_item;
	list_append(&s->sessions, &session->dirty.node);
	store_wants_flush(s, STORE_FLUSH_US);
}

static int write_now(struct session *session, struct error *err)
{
	if (list_is_empty(&session->dirty.node) || write_item(&session->dirty) == 0)
		return 0;
	return error_set(err, ERR_BUSY, 0, "the store has no room for more that waits");
}

int session_row_when_written(struct session *session, store_done_fn *fn, void *ctx,
                             struct error *err)
{
	struct store *s = store_of(session);
	struct session_waiter *waiter;

	if (!s)
		return 1;
	if (write_now(session, err) < 0)
		return -1;
	if (!session->writing)
		return 1;
	waiter = NEW(struct session_waiter);
	waiter->task = store_task_new(s, fn, ctx);
	list_append(&session->writing->waiting, &waiter->node);
	return 0;
}

static void on_deleted(void *ctx attr_unused, const struct error *err)
{
	if (err)
		log_error("delete a session from the store", err);
}

int session_row_delete(struct session *session, store_done_fn *fn, void *ctx, struct error *err)
{
	struct store *s = store_of(session);

	/* An unwritten row cannot be marked. */
	if (write_now(session, err) < 0)
		return -1;
	return store_write(
		s,
		&DB_SQL("UPDATE sessions SET deleted = 1, ended_ms = coalesce(ended_ms, ?4),"
	                " env = x'', spec = " WITHOUT_MADE_OF
	                " WHERE tenant = ?1 AND id = ?2 AND created_ms = ?3",
	                DB_TEXT(session->tenant), DB_TEXT(session->id), DB_INT(session->created_ms),
	                DB_INT(clock_real_ms())),
		1, fn ? fn : on_deleted, ctx, err);
}

void session_row_gone(struct session *session)
{
	struct store *s = store_of(session);
	struct session_write *w;

	if (s && !list_is_empty(&session->dirty.node) && session->ended_ms &&
	    write_item(&session->dirty) < 0)
		log_warn("session=%s was not written, ignoring", session->id);
	list_remove(&session->dirty.node);
	w = TAKE_PTR(session->writing);
	if (w && list_is_empty(&w->waiting)) {
		db_forget(w->job);
		free(w);
	} else if (w) {
		w->session = NULL;
		w->orphan.free = free_orphan;
		list_append(&w->store->orphans, &w->orphan.node);
	}
}

enum column {
	COLUMN_TENANT,
	COLUMN_ID,
	COLUMN_CREATED_MS,
	COLUMN_UPDATED_MS,
	COLUMN_ACTIVE_MS,
	COLUMN_ENDED_MS,
	COLUMN_STATE,
	COLUMN_MODE,
	COLUMN_LANGUAGE,
	COLUMN_AGENT_ID,
	COLUMN_BOX_ID,
	COLUMN_REASON,
	COLUMN_EXECUTIONS,
	COLUMN_IDLE_US,
	COLUMN_LIFETIME_US,
	COLUMN_HISTORY,
	COLUMN_ENV,
	COLUMN_SPEC,
	COLUMN_DEPENDENCIES,
	COLUMN_NOTES,
};

#define SELECT_SESSION "SELECT " STORE_SESSION_COLUMNS " FROM sessions WHERE deleted = 0"

static enum session_state state_of(const char *name, size_t len)
{
	for (int i = 0; i < SESSION_STATE_COUNT; i++) {
		const char *known = session_state_name((enum session_state)i);

		if (strlen(known) == len && memcmp(known, name, len) == 0)
			return (enum session_state)i;
	}
	return SESSION_FAILED; /* another version's state: it has ended anyway */
}

static void read_history(struct session *session, const char *text)
{
	while (*text) {
		size_t line = strcspn(text, "\n"), word = strcspn(text, " ");
		struct session_step step = {0};
		char number[24];

		if (word >= line)
			return;
		step.state = state_of(text, word);
		if (line - word - 1 >= sizeof(number))
			return;
		memcpy(number, text + word + 1, line - word - 1);
		number[line - word - 1] = '\0';
		if (parse_u64(number, &step.at_ms) < 0)
			return;
		session->steps[session->steps_count++ % SESSION_HISTORY_MAX] = step;
		text += line + (text[line] == '\n');
	}
}

static char **read_env(const char *bytes, size_t len)
{
	size_t count = 0, i = 0;
	char **env;

	for (size_t at = 0; at < len; at++)
		count += bytes[at] == '\0';
	env = xcalloc(count + 1, sizeof(*env));
	for (size_t at = 0; at < len && i < count; at += strlen(bytes + at) + 1)
		env[i++] = xstrdup(bytes + at);
	return env;
}

static char *text_of(const json_t *j, const char *name)
{
	const char *text = json_string_value(json_object_get(j, name));

	return text ? xstrdup(text) : NULL;
}

static char **read_names(const json_t *list)
{
	char **names = xcalloc(json_array_size(list) + 1, sizeof(*names));
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (name)
			names[count++] = xstrdup(name);
	}
	return names;
}

static void read_spec(struct session *session, const char *text)
{
	struct box_limits *l = &session->spec.limits;
	json_t *j = json_loads(text, 0, NULL);
	const char *request_id = json_string_value(json_object_get(j, "request_id"));
	const char *engine = json_string_value(json_object_get(j, "engine"));

#define NUMBER(name) json_integer_value(json_object_get(j, name))
	l->memory_bytes = (uint64_t)NUMBER("memory");
	l->workspace_bytes = (uint64_t)NUMBER("workspace");
	l->tmp_bytes = (uint64_t)NUMBER("tmp");
	l->shm_bytes = (uint64_t)NUMBER("shm");
	l->workspace_inodes = (uint32_t)NUMBER("workspace_inodes");
	l->tmp_inodes = (uint32_t)NUMBER("tmp_inodes");
	l->pids = (uint32_t)NUMBER("pids");
	l->cpu_millicores = (uint32_t)NUMBER("cpu");
	l->nofile = (uint32_t)NUMBER("nofile");
	session->past_template = text_of(j, "template");
	session->past_policy = text_of(j, "policy");
	session->key_id = text_of(j, "key_id");
	session->spec.network = (enum box_network)NUMBER("network");
#undef NUMBER
	/* It fitted when written. */
	(void)!str_copy(session->spec.request_id, sizeof(session->spec.request_id),
	                request_id ? request_id : "");
	(void)!str_copy(session->spec.engine, sizeof(session->spec.engine), engine ? engine : "");
	str_list_free(session->secrets);
	session->secrets = read_names(json_object_get(j, "secrets"));
	if (json_array_size(json_object_get(j, "mcp")) > 0)
		session->mcp = read_names(json_object_get(j, "mcp"));
	if (json_object_get(j, "network_allow"))
		session->network_allow = read_names(json_object_get(j, "network_allow"));
	session->past_spec = text_of(j, "made_of");
	session->past_spec_ms = (uint64_t)json_integer_value(json_object_get(j, "made_of_ms"));
	session->past_root = text_of(j, "root");
	session->past_image_bytes = (uint64_t)json_integer_value(json_object_get(j, "image_bytes"));
	json_decref(j);
}

static char *copy_text(const struct db_rows *rows, size_t row, size_t column)
{
	const char *text = db_rows_text(rows, row, column);

	return text ? xstrdup(text) : NULL;
}

struct session *session_row_read(struct session_service *sessions, const struct db_rows *rows,
                                 size_t row)
{
	const char *state = db_rows_text(rows, row, COLUMN_STATE);
	const char *mode = db_rows_text(rows, row, COLUMN_MODE);
	const char *box = db_rows_text(rows, row, COLUMN_BOX_ID);
	struct session *session = session_new_blank(sessions);
	size_t len;
	const char *env = db_rows_bytes(rows, row, COLUMN_ENV, &len);

	/* They fitted when written. */
	(void)!str_copy(session->tenant, sizeof(session->tenant),
	                db_rows_text(rows, row, COLUMN_TENANT));
	(void)!str_copy(session->id, sizeof(session->id), db_rows_text(rows, row, COLUMN_ID));
	(void)!str_copy(session->spec.id, sizeof(session->spec.id), box ? box : "");
	session->created_ms = (uint64_t)db_rows_int(rows, row, COLUMN_CREATED_MS);
	session->updated_ms = (uint64_t)db_rows_int(rows, row, COLUMN_UPDATED_MS);
	session->active_ms = (uint64_t)db_rows_int(rows, row, COLUMN_ACTIVE_MS);
	session->ended_ms = (uint64_t)db_rows_int(rows, row, COLUMN_ENDED_MS);
	session->state = state_of(state, strlen(state));
	session->mode = session_mode_find(mode);
	session->language = copy_text(rows, row, COLUMN_LANGUAGE);
	session->agent_id = copy_text(rows, row, COLUMN_AGENT_ID);
	session->reason = copy_text(rows, row, COLUMN_REASON);
	session->executions = (size_t)db_rows_int(rows, row, COLUMN_EXECUTIONS);
	session->idle_us = (uint64_t)db_rows_int(rows, row, COLUMN_IDLE_US);
	session->lifetime_us = (uint64_t)db_rows_int(rows, row, COLUMN_LIFETIME_US);
	session->env = read_env(env ? env : "", len);
	read_history(session, db_rows_text(rows, row, COLUMN_HISTORY));
	read_spec(session, db_rows_text(rows, row, COLUMN_SPEC));
	session->dependencies = copy_text(rows, row, COLUMN_DEPENDENCIES);
	session->notes = copy_text(rows, row, COLUMN_NOTES);
	return session;
}

static void on_found(void *ctx, const struct db_rows *rows, const struct error *err)
{
	struct store_load *search = ctx;
	struct store_load found = *search;

	free(search);
	if (rows && db_rows_count(rows) > 0 &&
	    !session_find(found.sessions, db_rows_text(rows, 0, COLUMN_TENANT),
	                  db_rows_text(rows, 0, COLUMN_ID)))
		session_remember(session_row_read(found.sessions, rows, 0));
	found.fn(found.ctx, err);
}

struct store_load *session_row_load(struct session_service *sessions, const char *tenant,
                                    const char *id, store_done_fn *fn, void *ctx, struct error *err)
{
	struct store_load *search = NEW(struct store_load);

	search->sessions = sessions;
	search->fn = fn;
	search->ctx = ctx;
	store_flush(sessions->config.store);
	search->job = db_read(sessions->config.store->db,
	                      &DB_SQL(SELECT_SESSION
	                              " AND ended_ms IS NOT NULL AND tenant = ?1 AND id = ?2"
	                              " ORDER BY created_ms DESC LIMIT 1",
	                              DB_TEXT(tenant), DB_TEXT(id)),
	                      ROW_MAX, on_found, search, err);
	if (search->job)
		return search;
	free(search);
	return NULL;
}

int session_row_live(struct store *s, struct db_rows **ret_rows, struct error *err)
{
	return db_query_now(s->db, &DB_SQL(SELECT_SESSION " AND ended_ms IS NULL ORDER BY no"),
	                    SIZE_MAX, ret_rows, err);
}
