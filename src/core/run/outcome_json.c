/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/outcome.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/run/facts.h"
#include "json/json_dump.h"

/* In the store: JSON. Output and report are stored separately, as bytes. */

enum member_type {
	MEMBER_BOOL,
	MEMBER_INT,
	MEMBER_U32,
	MEMBER_U64, /* COUNTER_UNKNOWN is -1 */
};

static const struct {
	const char *name;
	enum member_type type;
	size_t offset;
} members[] = {
#define MEMBER(type, field)                                                                        \
	{                                                                                          \
#field, MEMBER_##type, offsetof(struct outcome, field)                             \
	}
	MEMBER(BOOL, exited),
	MEMBER(INT, exit_code),
	MEMBER(INT, signal),
	MEMBER(BOOL, out_truncated),
	MEMBER(BOOL, err_truncated),
	MEMBER(BOOL, handler),
	MEMBER(BOOL, background),
	MEMBER(BOOL, terminal),
	MEMBER(BOOL, spec),
	MEMBER(BOOL, later),
	MEMBER(U64, stdout_bytes),
	MEMBER(U64, stderr_bytes),
	MEMBER(U64, duration_us),
	MEMBER(U64, start_us),
	MEMBER(U64, queue_us),
	MEMBER(U64, cpu_us),
	MEMBER(U64, memory_peak_bytes),
	MEMBER(U64, processes_peak),
	MEMBER(U64, read_bytes),
	MEMBER(U64, write_bytes),
	MEMBER(U64, net_sent),
	MEMBER(U64, net_received),
	MEMBER(U64, net_connections),
	MEMBER(BOOL, net_shared),
	MEMBER(U32, layers),
	MEMBER(U32, layers_vouched),
	MEMBER(U32, layers_missing),
	MEMBER(U32, grade),
	MEMBER(U32, start),
	MEMBER(BOOL, pooled),
	MEMBER(U32, receipt_form),
	{"compiled", MEMBER_BOOL, offsetof(struct outcome, compile.used)},
	{"compile_failed", MEMBER_BOOL, offsetof(struct outcome, compile.failed)},
	{"compile_cached", MEMBER_BOOL, offsetof(struct outcome, compile.cached)},
	{"compile_us", MEMBER_U64, offsetof(struct outcome, compile.duration_us)},
#undef MEMBER
};

/* What is read must point to static storage. "": not a word of ours. */
static const char *known_word(const json_t *text)
{
	static const char *const words[] = {"strict", "best-effort"};
	const char *s = json_string_value(text);

	for (size_t i = 0; s && i < ARRAY_SIZE(words); i++)
		if (str_equal(words[i], s))
			return words[i];
	return "";
}

static int64_t get_member(const struct outcome *o, size_t i)
{
	const char *at = (const char *)o + members[i].offset;

	switch (members[i].type) {
	case MEMBER_BOOL:
		return *(const bool *)at;
	case MEMBER_INT:
		return *(const int *)(const void *)at;
	case MEMBER_U32:
		return *(const uint32_t *)(const void *)at;
	case MEMBER_U64:
	default:
		return (int64_t) * (const uint64_t *)(const void *)at;
	}
}

static void set_member(struct outcome *o, size_t i, int64_t value)
{
	char *at = (char *)o + members[i].offset;

	switch (members[i].type) {
	case MEMBER_BOOL:
		*(bool *)at = value != 0;
		break;
	case MEMBER_INT:
		*(int *)(void *)at = (int)value;
		break;
	case MEMBER_U32:
		*(uint32_t *)(void *)at = (uint32_t)value;
		break;
	case MEMBER_U64:
	default:
		*(uint64_t *)(void *)at = (uint64_t)value;
		break;
	}
}

static json_t *write_denial(const struct denial *d)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:i}", "kind", d->kind, "what", d->what, "rule",
	                      d->rule, "count", (json_int_t)d->count, "errno", d->error);

	/* What a program sent need not be text. */
	if (d->detail)
		(void)json_object_set_new(j, "detail", json_string(d->detail));
	if (d->remedy)
		(void)json_object_set_new(j, "remedy", json_string(d->remedy));
	if (d->shared)
		(void)json_object_set_new(j, "shared", json_true());
	return j;
}

/* Bytes of a compiler may be no text. */
static json_t *text_or_empty(const char *text)
{
	json_t *j = json_string(text);

	return j ? j : json_string("");
}

static json_t *write_diagnostics(const struct diagnostics *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->count; i++) {
		const struct diagnostic *one = &d->list[i];

		(void)!json_array_append_new(
			list,
			json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "file",
		                  text_or_empty(one->file), "severity",
		                  text_or_empty(one->severity), "code", text_or_empty(one->code),
		                  "message", text_or_empty(one->message), "line",
		                  (json_int_t)one->line, "column", (json_int_t)one->column));
	}
	return list;
}

static char *read_text(const json_t *item, const char *key)
{
	const char *text = json_string_value(json_object_get(item, key));

	return xstrdup(text ? text : "");
}

static void read_diagnostics(const json_t *list, struct diagnostics *d)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		struct diagnostic *one = diagnostics_add(d);

		if (!one)
			return;
		one->file = read_text(item, "file");
		one->severity = read_text(item, "severity");
		one->code = read_text(item, "code");
		one->message = read_text(item, "message");
		one->line = (unsigned)json_integer_value(json_object_get(item, "line"));
		one->column = (unsigned)json_integer_value(json_object_get(item, "column"));
	}
}

/* Every run writes these: directly, since an object of them costs several times as much. */
static int add_members(struct buf *b, const struct outcome *o)
{
	int r = 0;

	b->len--; /* replaces the brace */
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		r |= buf_addf(b, ",\"%s\":%" PRId64, members[i].name, get_member(o, i));
	if (o->facts)
		r |= buf_addf(b, ",\"facts\":{%s}", o->facts->members);
	return r | buf_add(b, "}", 1);
}

char *outcome_to_json(const struct outcome *outcome, bool session_reset)
{
	struct buf b = BUF_INIT(SIZE_MAX);
	json_t *denials = json_array(), *j;
	size_t len;
	int r = 0;

	for (unsigned i = 0; i < outcome->denials_count; i++)
		r |= json_array_append_new(denials, write_denial(&outcome->denials[i]));
	j = json_pack("{s:s, s:s?, s:s, s:s, s:o, s:i, s:i}", "status",
	              outcome_status_name(outcome->status), "limit",
	              outcome_limit_name(outcome->limit), "driver", outcome->engine, "isolation",
	              outcome->isolation ? outcome->isolation : "", "denials", denials,
	              "artifacts_truncated", outcome->artifacts.truncated, "session_reset",
	              session_reset);
	if (outcome->receipt)
		r |= json_object_set(j, "receipt", outcome->receipt);
	if (outcome->compile.diagnostics.count > 0)
		r |= json_object_set_new(j, "diagnostics",
		                         write_diagnostics(&outcome->compile.diagnostics));
	if (r == 0 && json_dump_to(&b, j) == 0)
		r = add_members(&b, outcome);
	assert(r == 0 && b.len > 0); /* all texts are ASCII */
	json_decref(j);
	return buf_take(&b, &len);
}

static char *copy_text(const json_t *text)
{
	return json_is_string(text) ? xstrdup(json_string_value(text)) : NULL;
}

static void read_denials(const json_t *list, struct outcome *o)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		struct denial *d = &o->denials[o->denials_count];
		const char *what = json_string_value(json_object_get(item, "what"));

		if (o->denials_count == DENIALS_MAX || !what ||
		    str_copy(d->what, sizeof(d->what), what) < 0)
			return;
		d->kind = denial_word(json_string_value(json_object_get(item, "kind")));
		d->rule = denial_word(json_string_value(json_object_get(item, "rule")));
		d->count = (uint64_t)json_integer_value(json_object_get(item, "count"));
		d->error = (int)json_integer_value(json_object_get(item, "errno"));
		d->detail = copy_text(json_object_get(item, "detail"));
		d->remedy = copy_text(json_object_get(item, "remedy"));
		d->shared = json_is_true(json_object_get(item, "shared"));
		o->denials_count++;
	}
}

static json_t *keep_object(const json_t *j, const char *name)
{
	json_t *value = json_object_get(j, name);

	return json_is_object(value) ? json_incref(value) : NULL;
}

static struct facts *read_facts(const json_t *j)
{
	const json_t *stored = json_object_get(j, "facts");

	return json_is_object(stored) ? facts_read(stored) : NULL;
}

static int find_status(const json_t *text)
{
	const char *s = json_string_value(text);
	int i = 0;

	while (s && i < OUTCOME_STATUS_COUNT &&
	       !str_equal(outcome_status_name((enum outcome_status)i), s))
		i++;
	return s ? i : OUTCOME_STATUS_COUNT;
}

/* "driver" since there was one. */
static void read_engine(const json_t *text, struct outcome *o)
{
	const char *name = json_string_value(text);

	if (!name || str_copy(o->engine, sizeof(o->engine), name) < 0)
		o->engine[0] = '\0';
}

int outcome_from_json(const char *text, struct outcome *ret_outcome, bool *ret_session_reset)
{
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct outcome o = {0};
	int status = find_status(json_object_get(j, "status"));

	if (!json_is_object(j) || status == OUTCOME_STATUS_COUNT) {
		json_decref(j);
		return -EINVAL;
	}
	o.status = (enum outcome_status)status;
	o.limit = outcome_limit_named(json_string_value(json_object_get(j, "limit")));
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		set_member(&o, i, json_integer_value(json_object_get(j, members[i].name)));
	read_engine(json_object_get(j, "driver"), &o);
	o.isolation = known_word(json_object_get(j, "isolation"));
	read_denials(json_object_get(j, "denials"), &o);
	o.facts = read_facts(j);
	o.receipt = keep_object(j, "receipt");
	read_diagnostics(json_object_get(j, "diagnostics"), &o.compile.diagnostics);
	o.artifacts.truncated |= json_integer_value(json_object_get(j, "artifacts_truncated")) != 0;
	*ret_session_reset = json_integer_value(json_object_get(j, "session_reset")) != 0;
	*ret_outcome = o;
	json_decref(j);
	return 0;
}
