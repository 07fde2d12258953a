/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/run_request_json.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "core/request/run_request.h"

/* Encode. Bytes become base64; text stays as it is, because it was JSON or was checked on
 * arrival. */

static void set_member(json_t *j, const char *name, json_t *value)
{
	if (value)
		(void)json_object_set_new(j, name, value);
}

static void set_text(json_t *j, const char *name, const char *text)
{
	set_member(j, name, text ? json_string(text) : NULL);
}

static json_t *encode_bytes(const char *data, size_t len)
{
	cleanup_free char *text = base64_encode(data, len);

	return json_string(text);
}

static json_t *encode_list(char *const *words)
{
	json_t *j = words ? json_array() : NULL;

	for (; words && *words; words++)
		(void)json_array_append_new(j, encode_bytes(*words, strlen(*words)));
	return j;
}

static json_t *encode_files(const struct run_request *request)
{
	json_t *j = request->files_count ? json_array() : NULL;

	for (size_t i = 0; i < request->files_count; i++) {
		const struct run_request_file *file = &request->files[i];
		json_t *one = json_object();

		set_member(one, "name", encode_bytes(file->name, strlen(file->name)));
		set_member(one, "data", encode_bytes(file->data, file->len));
		(void)json_array_append_new(j, one);
	}
	return j;
}

char *run_request_to_json(const struct run_request *request)
{
	json_t *j = json_object();
	char *text;

	set_text(j, "language", request->language);
	set_text(j, "request_id", request->request_id);
	set_text(j, "ask", request->ask);
	set_text(j, "cwd", request->cwd);
	if (request->stdin_len > 0)
		set_member(j, "stdin", encode_bytes(request->stdin_data, request->stdin_len));
	if (request->stdin_open)
		set_member(j, "stdin_open", json_true());
	if (request->fresh)
		set_member(j, "fresh", json_true());
	set_member(j, "args", encode_list(request->args));
	set_member(j, "env", encode_list(request->env));
	set_member(j, "files", encode_files(request));
	if (request->timeout_us)
		set_member(j, "timeout_us", json_integer((json_int_t)request->timeout_us));
	if (request->max_output_bytes)
		set_member(j, "max_output", json_integer((json_int_t)request->max_output_bytes));
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	assert(text); /* contains only valid JSON */
	return text;
}

/* Decode. Reject the whole text if any part differs from what the encoder writes: half a request
 * is not what the caller asked for. */

static int read_text(const json_t *j, const char *name, char **ret_text)
{
	const json_t *text = json_object_get(j, name);

	if (text && !json_is_string(text))
		return -EBADMSG;
	*ret_text = text ? xstrdup(json_string_value(text)) : NULL;
	return 0;
}

static int read_flag(const json_t *j, const char *name, bool *ret_flag)
{
	const json_t *flag = json_object_get(j, name);

	*ret_flag = json_is_true(flag);
	return flag && !json_is_boolean(flag) ? -EBADMSG : 0;
}

static int read_number(const json_t *j, const char *name, uint64_t *ret_number)
{
	const json_t *number = json_object_get(j, name);

	if (number && (!json_is_integer(number) || json_integer_value(number) < 0))
		return -EBADMSG;
	*ret_number = (uint64_t)json_integer_value(number);
	return 0;
}

/* Return: owned, NUL-terminated; NULL: not valid. */
static char *bytes_of(const json_t *j, size_t *ret_len)
{
	return json_is_string(j)
	               ? base64_decode(json_string_value(j), json_string_length(j), ret_len)
	               : NULL;
}

/* Like bytes_of for text without NUL. */
static char *word_of(const json_t *j)
{
	size_t len = 0;
	char *word = bytes_of(j, &len);

	if (word && strlen(word) == len)
		return word;
	free(word);
	return NULL;
}

static int read_stdin(const json_t *j, struct run_request *r)
{
	const json_t *data = json_object_get(j, "stdin");

	if (!data)
		return 0;
	r->stdin_data = bytes_of(data, &r->stdin_len);
	return r->stdin_data ? 0 : -EBADMSG;
}

static int read_list(const json_t *j, const char *name, char ***ret_words)
{
	const json_t *list = json_object_get(j, name);
	size_t count = json_array_size(list);

	if (!list)
		return 0;
	if (!json_is_array(list))
		return -EBADMSG;
	*ret_words = xcalloc(count + 1, sizeof(**ret_words));
	for (size_t i = 0; i < count; i++) {
		(*ret_words)[i] = word_of(json_array_get(list, i));
		if (!(*ret_words)[i])
			return -EBADMSG;
	}
	return 0;
}

static int read_files(const json_t *j, struct run_request *r)
{
	const json_t *list = json_object_get(j, "files");
	size_t count = json_array_size(list);

	if (!list)
		return 0;
	if (count == 0) /* the encoder omits an empty list */
		return -EBADMSG;
	r->files = xcalloc(count, sizeof(*r->files));
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(list, i);
		struct run_request_file *file = &r->files[r->files_count++];

		file->name = word_of(json_object_get(one, "name"));
		file->data = bytes_of(json_object_get(one, "data"), &file->len);
		if (!file->name || !file->data)
			return -EBADMSG;
	}
	return 0;
}

static int read_request(const json_t *j, struct run_request *r)
{
	bool bad = read_text(j, "language", &r->language) < 0 ||
	           read_text(j, "request_id", &r->request_id) < 0 ||
	           read_text(j, "ask", &r->ask) < 0 || read_text(j, "cwd", &r->cwd) < 0 ||
	           read_stdin(j, r) < 0 || read_flag(j, "stdin_open", &r->stdin_open) < 0 ||
	           read_flag(j, "fresh", &r->fresh) < 0 || read_list(j, "args", &r->args) < 0 ||
	           read_list(j, "env", &r->env) < 0 || read_files(j, r) < 0 ||
	           read_number(j, "timeout_us", &r->timeout_us) < 0 ||
	           read_number(j, "max_output", &r->max_output_bytes) < 0;

	return bad ? -EBADMSG : 0;
}

int run_request_from_json(const char *text, struct run_request *ret_request, struct error *err)
{
	json_t *j = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct run_request r = {0};
	int status = json_is_object(j) ? read_request(j, &r) : -EBADMSG;

	json_decref(j);
	if (status < 0) {
		run_request_done(&r);
		return error_set(err, ERR_STORAGE, 0, "the stored request is damaged");
	}
	*ret_request = r;
	return 0;
}
