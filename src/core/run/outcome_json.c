/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/outcome_json.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

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
	MEMBER(U32, layers),
	MEMBER(U32, layers_missing),
	MEMBER(U32, start),
	MEMBER(BOOL, pooled),
#undef MEMBER
};

/* Literals used elsewhere: what is read must point to static storage. */
static const char *const words[] = {"syscall", "limit", "seccomp", "pids",
                                    "memory",  "tmpfs", "native",  "fake"};

static const char *literal(const json_t *text)
{
	for (size_t i = 0; json_is_string(text) && i < ARRAY_SIZE(words); i++)
		if (str_equal(words[i], json_string_value(text)))
			return words[i];
	return "";
}

static void set(json_t *j, const char *name, json_t *value)
{
	int r = json_object_set_new(j, name, value);

	assert(r == 0);
	(void)r;
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

char *outcome_to_json(const struct outcome *outcome, bool session_reset)
{
	json_t *j = json_object(), *denials = json_array();
	const char *limit = outcome_limit_name(outcome->limit);
	char *text;

	for (unsigned i = 0; i < outcome->denials_count; i++) {
		const struct denial *d = &outcome->denials[i];
		int r = json_array_append_new(
			denials, json_pack("{s:s, s:s, s:s, s:I}", "kind", d->kind, "what", d->what,
		                           "rule", d->rule, "count", (json_int_t)d->count));

		assert(r == 0);
		(void)r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		set(j, members[i].name, json_integer(get_member(outcome, i)));
	set(j, "status", json_string(outcome_status_name(outcome->status)));
	set(j, "limit", limit ? json_string(limit) : json_null());
	set(j, "driver", json_string(outcome->driver ? outcome->driver : ""));
	set(j, "denials", denials);
	set(j, "artifacts_truncated", json_integer(outcome->artifacts.truncated));
	set(j, "session_reset", json_integer(session_reset));
	text = json_dumps(j, JSON_COMPACT);
	assert(text);
	json_decref(j);
	return text;
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
		d->kind = literal(json_object_get(item, "kind"));
		d->rule = literal(json_object_get(item, "rule"));
		d->count = (uint64_t)json_integer_value(json_object_get(item, "count"));
		o->denials_count++;
	}
}

/* Return: index, or @count. */
static int find_name(const json_t *text, int count, const char *(*name)(int i))
{
	const char *s = json_string_value(text);

	for (int i = 0; s && i < count; i++)
		if (name(i) && str_equal(name(i), s))
			return i;
	return count;
}

static const char *status_name(int i)
{
	return outcome_status_name((enum outcome_status)i);
}

static const char *limit_name(int i)
{
	return outcome_limit_name((enum outcome_limit)i);
}

int outcome_from_json(const char *text, struct outcome *ret_outcome, bool *ret_session_reset)
{
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct outcome o = {0};
	int status = find_name(json_object_get(j, "status"), OUTCOME_STATUS_COUNT, status_name);
	int limit = find_name(json_object_get(j, "limit"), OUTCOME_LIMIT_COUNT, limit_name);

	if (!json_is_object(j) || status == OUTCOME_STATUS_COUNT) {
		json_decref(j);
		return -EINVAL;
	}
	o.status = (enum outcome_status)status;
	o.limit = limit == OUTCOME_LIMIT_COUNT ? OUTCOME_LIMIT_NONE : (enum outcome_limit)limit;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		set_member(&o, i, json_integer_value(json_object_get(j, members[i].name)));
	o.driver = literal(json_object_get(j, "driver"));
	read_denials(json_object_get(j, "denials"), &o);
	o.artifacts.truncated |= json_integer_value(json_object_get(j, "artifacts_truncated")) != 0;
	*ret_session_reset = json_integer_value(json_object_get(j, "session_reset")) != 0;
	*ret_outcome = o;
	json_decref(j);
	return 0;
}
