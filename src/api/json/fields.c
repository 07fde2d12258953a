/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/fields.h"

#include "api/json/json.h"
#include "base/str.h"
#include "base/suggest.h"
#include <string.h>

#define FIELD_PATH_LEN sizeof(((struct error *)0)->field)
#define WHAT_LEN       160
#define WARNINGS_MAX   16 /* unknown fields of one request that are named */

const struct field *fields_find(const struct fields *fields, const char *name)
{
	for (const struct field *f = fields->rows; f->name; f++)
		if (str_equal(f->name, name))
			return f;
	return NULL;
}

void *fields_target(const struct field_value *v)
{
	return v->field->at > 0 ? (char *)v->out + (v->field->at - 1) : NULL;
}

int fields_wrong(const struct field_value *v, const char *what)
{
	return error_field(v->err, v->path, "must be %s", what);
}

int fields_refuse(const struct field_value *v, enum error_code code, const char *what)
{
	(void)error_field(v->err, v->path, "%s", what);
	v->err->code = code;
	return -1;
}

/* The caller may have put a field one level too high. */
static const struct field *find_nested(const struct fields *fields, const char *name)
{
	for (const struct field *f = fields->rows; f->name; f++)
		if (f->type == FIELD_OBJECT && f->fields && fields_find(f->fields, name))
			return f;
	return NULL;
}

/* What is wrong with a field that no row has: into ret_path and ret_what. */
static void describe_unknown(const struct fields *fields, const char *parent, const char *name,
                             char ret_path[FIELD_PATH_LEN], char ret_what[WHAT_LEN])
{
	const struct field *nested = find_nested(fields, name);
	const char *dot = parent[0] ? "." : "";
	struct suggest s = {.word = name};
	char nearest[64] = "";

	(void)snprintf(ret_path, FIELD_PATH_LEN, "%s%s%s", parent, dot, name[0] ? name : "\"\"");
	for (const struct field *f = fields->rows; f->name; f++)
		if (!f->hidden)
			suggest_offer(&s, f->name);
	if (nested)
		(void)snprintf(nearest, sizeof(nearest), "%s.%s", nested->name, name);
	else if (s.best)
		(void)snprintf(nearest, sizeof(nearest), "%s", s.best);
	if (nearest[0])
		(void)snprintf(ret_what, WHAT_LEN, "no such field; did you mean '%s%s%s'?", parent,
		               dot, nearest);
	else
		(void)snprintf(ret_what, WHAT_LEN, "no such field");
}

static int refuse_unknown(const struct fields *fields, const struct field_value *parent,
                          const char *name)
{
	char path[FIELD_PATH_LEN], what[WHAT_LEN];
	struct field_value v = *parent;

	describe_unknown(fields, parent->path, name, path, what);
	v.path = path;
	return fields_refuse(&v, ERR_UNKNOWN_FIELD, what);
}

/* Callers choose the names and their number. */
static void warn_unknown(const struct fields *fields, const struct field_value *parent,
                         const char *name)
{
	char path[FIELD_PATH_LEN], what[WHAT_LEN], text[FIELD_PATH_LEN + WHAT_LEN + 16];
	size_t count = json_array_size(parent->warnings);

	if (count > WARNINGS_MAX)
		return;
	describe_unknown(fields, parent->path, name, path, what);
	(void)snprintf(text, sizeof(text), "%s: ignored: %s", path, what);
	json_append(parent->warnings, count == WARNINGS_MAX
	                                      ? json_string("more fields are unknown and ignored")
	                                      : json_text(text, strlen(text)));
}

static bool has_other_name(const struct field *f, const struct field_value *object)
{
	return f->other_name && json_is_string(json_object_get(object->value, f->other_name));
}

/* @value NULL: absent. */
static int take_row(const struct field *f, const struct field_value *object, const json_t *value)
{
	cleanup_json json_t *fallback = NULL;
	char path[sizeof(object->err->field)];
	struct field_value v = *object;

	/* "resources" + "memory", truncated: callers choose some names. */
	(void)snprintf(path, sizeof(path), "%s%s%s", object->path, object->path[0] ? "." : "",
	               f->name);
	if (!value && f->required && !v.partial && !has_other_name(f, object))
		return error_field(v.err, path, "is missing");
	if (!value && f->fallback) {
		value = fallback = json_loads(f->fallback, JSON_DECODE_ANY, NULL);
		assert(value);
	}
	if (!value)
		return 0;
	v.field = f;
	v.path = path;
	v.value = value;
	if (f->type != FIELD_CUSTOM && field_take(&v) < 0)
		return -1;
	if (f->given_at)
		*(bool *)((char *)v.out + (f->given_at - 1)) = true;
	return f->check ? f->check(&v) : 0;
}

int fields_decode_at(const struct fields *fields, const struct field_value *object)
{
	json_t *members = (json_t *)(uintptr_t)object->value, *member;
	struct field_value v = *object;
	const char *name;

	v.open |= (fields->flags & FIELDS_OPEN) != 0;
	v.loose |= (fields->flags & FIELDS_LOOSE) != 0;
	v.partial = fields->flags & FIELDS_PARTIAL;
	json_object_foreach (members, name, member) {
		if (fields_find(fields, name))
			continue;
		if (v.warnings)
			warn_unknown(fields, &v, name);
		else if (!v.open)
			return refuse_unknown(fields, &v, name);
	}
	for (const struct field *f = fields->rows; f->name; f++) {
		const json_t *value = json_object_get(object->value, f->name);

		if (json_is_null(value) && v.loose && !f->not_null && f->type != FIELD_ANY)
			value = NULL;
		if (take_row(f, &v, value) < 0)
			return -1;
	}
	return 0;
}

int fields_decode_open(const struct fields *fields, const json_t *object, const void *ctx,
                       json_t *warnings, void *out, struct error *err)
{
	const struct field_value v = {.path = "",
	                              .value = object,
	                              .out = out,
	                              .ctx = ctx,
	                              .warnings = warnings,
	                              .err = err};

	return fields_decode_at(fields, &v);
}

int fields_decode(const struct fields *fields, const json_t *object, const void *ctx, void *out,
                  struct error *err)
{
	return fields_decode_open(fields, object, ctx, NULL, out, err);
}

int fields_decode_text(const struct fields *fields, const char *text, size_t len, const void *ctx,
                       void *out, struct error *err)
{
	cleanup_json json_t *object = json_read_object(text, len, err);

	return object ? fields_decode(fields, object, ctx, out, err) : -1;
}

int fields_decode_query(const struct fields *fields, field_text_fn *get, const void *query,
                        void *out, struct error *err)
{
	struct field_value v = {.path = "", .out = out, .err = err};

	for (const struct field *f = fields->rows; f->name; f++) {
		cleanup_json json_t *value = NULL;

		/* A text would be a copy that nothing frees. */
		assert(!f->fallback || (f->type != FIELD_STRING && f->type != FIELD_WORD));
		v.text = get(query, f->name);
		if (v.text)
			value = field_parse(f, v.text);
		if (take_row(f, &v, value) < 0)
			return -1;
	}
	return 0;
}

void fields_done(const struct fields *fields, void *out)
{
	for (const struct field *f = fields->rows; f->name; f++)
		if (f->at > 0)
			field_release(f, out);
}
