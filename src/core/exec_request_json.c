/* SPDX-License-Identifier: Apache-2.0 */
#include "core/exec_request_json.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "core/exec.h"

/* Out. Bytes are in base64, texts as they are: those were JSON, or checked, when they came. */

static void set(json_t *j, const char *name, json_t *value)
{
	if (value)
		(void)json_object_set_new(j, name, value);
}

static void set_text(json_t *j, const char *name, const char *text)
{
	set(j, name, text ? json_string(text) : NULL);
}

static json_t *bytes(const char *data, size_t len)
{
	cleanup_free char *text = base64_encode(data, len);

	return json_string(text);
}

static json_t *list(char *const *words)
{
	json_t *j = words ? json_array() : NULL;

	for (; words && *words; words++)
		(void)json_array_append_new(j, bytes(*words, strlen(*words)));
	return j;
}

static json_t *files(const struct exec_request *request)
{
	json_t *j = request->files_count ? json_array() : NULL;

	for (size_t i = 0; i < request->files_count; i++) {
		const struct exec_request_file *file = &request->files[i];
		json_t *one = json_object();

		set(one, "name", bytes(file->name, strlen(file->name)));
		set(one, "data", bytes(file->data, file->len));
		(void)json_array_append_new(j, one);
	}
	return j;
}

char *exec_request_to_json(const struct exec_request *request)
{
	json_t *j = json_object();
	char *text;

	set_text(j, "language", request->language);
	set_text(j, "request_id", request->request_id);
	set_text(j, "ask", request->ask);
	if (request->stdin_len > 0)
		set(j, "stdin", bytes(request->stdin_data, request->stdin_len));
	if (request->stdin_open)
		set(j, "stdin_open", json_true());
	if (request->fresh)
		set(j, "fresh", json_true());
	set(j, "args", list(request->args));
	set(j, "env", list(request->env));
	set(j, "files", files(request));
	if (request->timeout_us)
		set(j, "timeout_us", json_integer((json_int_t)request->timeout_us));
	if (request->max_output_bytes)
		set(j, "max_output", json_integer((json_int_t)request->max_output_bytes));
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return text ? text : xstrdup("{}");
}

/* In again. */

static char *text_of(const json_t *j, const char *name)
{
	const char *text = json_string_value(json_object_get(j, name));

	return text ? xstrdup(text) : NULL;
}

/* Return: owned, NUL-terminated; NULL: there is none, or it is none. */
static char *bytes_of(const json_t *j, size_t *ret_len)
{
	return json_is_string(j)
	               ? base64_decode(json_string_value(j), json_string_length(j), ret_len)
	               : NULL;
}

static char **list_of(const json_t *j)
{
	size_t count = json_array_size(j), len;
	char **words = json_is_array(j) ? xcalloc(count + 1, sizeof(*words)) : NULL;

	for (size_t i = 0, n = 0; words && i < count; i++) {
		char *word = bytes_of(json_array_get(j, i), &len);

		if (word)
			words[n++] = word;
	}
	return words;
}

static void read_files(const json_t *j, struct exec_request *r)
{
	size_t count = json_array_size(j), len;

	r->files = count ? xcalloc(count, sizeof(*r->files)) : NULL;
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(j, i);
		struct exec_request_file file = {
			.name = bytes_of(json_object_get(one, "name"), &len),
			.data = bytes_of(json_object_get(one, "data"), &file.len),
		};

		if (file.name && file.data) {
			r->files[r->files_count++] = file;
			continue;
		}
		free(file.name);
		free(file.data);
	}
}

int exec_request_from_json(const char *text, struct exec_request *ret_request, struct error *err)
{
	json_t *j = text ? json_loads(text, 0, NULL) : NULL;
	struct exec_request r = {0};

	if (!json_is_object(j)) {
		json_decref(j);
		return error_set(err, ERR_STORAGE, 0, "what was asked for was not written down");
	}
	r.language = text_of(j, "language");
	r.request_id = text_of(j, "request_id");
	r.ask = text_of(j, "ask");
	r.stdin_data = bytes_of(json_object_get(j, "stdin"), &r.stdin_len);
	r.stdin_open = json_is_true(json_object_get(j, "stdin_open"));
	r.fresh = json_is_true(json_object_get(j, "fresh"));
	r.args = list_of(json_object_get(j, "args"));
	r.env = list_of(json_object_get(j, "env"));
	read_files(json_object_get(j, "files"), &r);
	r.timeout_us = (uint64_t)json_integer_value(json_object_get(j, "timeout_us"));
	r.max_output_bytes = (uint64_t)json_integer_value(json_object_get(j, "max_output"));
	json_decref(j);
	*ret_request = r;
	return 0;
}
