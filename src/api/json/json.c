/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/utf8.h"
#include <stdbool.h>
#include <string.h>

#define INDEX_NONE SIZE_MAX

/* One open object or array. */
struct frame {
	const char *key; /* of the current member; NULL: none yet */
	size_t key_len;
	size_t index; /* INDEX_NONE in an object */
	bool in_value;
};

struct scan {
	struct frame frames[JSON_DEPTH_MAX];
	size_t depth;
	size_t values;
	bool too_deep;
};

/* From after the opening quote. Return: index of the closing one, or @len. */
static size_t skip_string(const char *text, size_t at, size_t len)
{
	while (at < len && text[at] != '"')
		at += text[at] == '\\' ? 2 : 1;
	return at < len ? at : len;
}

static void scan_open(struct scan *s, bool is_array)
{
	s->too_deep |= s->depth == JSON_DEPTH_MAX;
	if (s->too_deep)
		return;
	s->frames[s->depth++] = (struct frame){.index = is_array ? 0 : INDEX_NONE};
}

static void scan_key(struct scan *s, const char *text, size_t len)
{
	struct frame *top = s->depth ? &s->frames[s->depth - 1] : NULL;

	if (!top || top->index != INDEX_NONE || top->in_value)
		return;
	top->key = text;
	top->key_len = len;
}

static void scan_separator(struct scan *s, char c)
{
	struct frame *top = s->depth ? &s->frames[s->depth - 1] : NULL;

	if (!top)
		return;
	if (c == ':') {
		top->in_value = true;
		return;
	}
	top->in_value = false;
	top->key = NULL;
	if (top->index != INDEX_NONE)
		top->index++;
}

/* Not a parser: accepts any bytes, tracks depth and path. Stops at a limit. */
static void scan_run(struct scan *s, const char *text, size_t len)
{
	for (size_t i = 0; i < len && !s->too_deep && s->values <= JSON_VALUES_MAX; i++) {
		char c = text[i];

		if (c == '"') {
			size_t end = skip_string(text, i + 1, len);

			scan_key(s, text + i + 1, end - i - 1);
			i = end;
		} else if (c == '{' || c == '[') {
			s->values++;
			scan_open(s, c == '[');
		} else if (c == '}' || c == ']') {
			s->depth -= s->depth > 0;
		} else if (c == ',' || c == ':') {
			s->values++;
			scan_separator(s, c);
		}
	}
}

/* "resources.memory", "args[2]", truncated. */
static void scan_path(const struct scan *s, char *ret_path, size_t size)
{
	size_t used = 0;

	ret_path[0] = '\0';
	for (size_t i = 0; i < s->depth && used < size; i++) {
		const struct frame *f = &s->frames[i];
		int n = 0;

		if (f->index != INDEX_NONE)
			n = snprintf(ret_path + used, size - used, "[%zu]", f->index);
		else if (f->key)
			n = snprintf(ret_path + used, size - used, "%s%.*s", used ? "." : "",
			             (int)(f->key_len < size ? f->key_len : size), f->key);
		used += n > 0 ? (size_t)n : 0;
	}
}

static void parse_error(const char *text, size_t len, const json_error_t *why, struct error *err)
{
	struct scan scan = {0};
	size_t at = why->position > 0 && (size_t)why->position < len ? (size_t)why->position : len;

	(void)error_set(err, ERR_BAD_JSON, 0, "line %d, column %d: %s", why->line, why->column,
	                why->text);
	/* The value before a missing separator is not at fault. */
	if (why->text[0] == '\'')
		return;
	scan_run(&scan, text, at);
	scan_path(&scan, err->field, sizeof(err->field));
}

json_t *json_read(const char *text, size_t len, struct error *err)
{
	struct scan scan = {0};
	json_error_t why;
	json_t *value;

	scan_run(&scan, text, len);
	if (scan.too_deep) {
		(void)error_set(err, ERR_BAD_JSON, 0, "nested deeper than %d levels",
		                JSON_DEPTH_MAX);
		return NULL;
	}
	if (scan.values > JSON_VALUES_MAX) {
		(void)error_set(err, ERR_BAD_JSON, 0, "more than %d values", JSON_VALUES_MAX);
		return NULL;
	}
	/* NUL is accepted so that the field's check can name it. */
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!value)
		parse_error(text, len, &why, err);
	return value;
}

json_t *json_read_object(const char *text, size_t len, struct error *err)
{
	json_t *object = json_read(text, len, err);

	if (object && !json_is_object(object)) {
		json_decref(object);
		(void)error_set(err, ERR_BAD_JSON, 0, "must be an object");
		return NULL;
	}
	return object;
}

json_t *json_text(const char *text, size_t len)
{
	cleanup_free char *clean = NULL;
	json_t *j;

	if (!utf8_is_valid(text, len)) {
		clean = utf8_sanitize(text, len, &len);
		text = clean;
	}
	j = json_stringn_nocheck(text, len);
	assert(j);
	return j;
}

void json_set(json_t *object, const char *key, json_t *value)
{
	int r = json_object_set_new_nocheck(object, key, value);

	assert(r == 0);
	(void)r;
}

void json_append(json_t *array, json_t *value)
{
	int r = json_array_append_new(array, value);

	assert(r == 0);
	(void)r;
}
