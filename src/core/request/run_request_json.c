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

/* Bytes become base64; text was checked on arrival. */

#define AT(field) offsetof(struct run_request, field)

static const struct field {
	const char *name;
	size_t offset;
	enum {
		TEXT,  /* char * */
		FLAG,  /* bool */
		WORDS, /* char ** */
		NUMBER /* uint64_t */
	} kind;
} fields[] = {
	{"language", AT(language), TEXT},
	{"request_id", AT(request_id), TEXT},
	{"ask", AT(ask), TEXT},
	{"cwd", AT(cwd), TEXT},
	{"stdin_open", AT(stdin_open), FLAG},
	{"fresh", AT(fresh), FLAG},
	{"args", AT(args), WORDS},
	{"env", AT(env), WORDS},
	{"timeout_us", AT(timeout_us), NUMBER},
	{"max_output", AT(max_output_bytes), NUMBER},
};

static void set_member(json_t *j, const char *name, json_t *value)
{
	if (value)
		(void)json_object_set_new(j, name, value);
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

/* NULL: not set. */
static json_t *encode_field(const struct field *f, const void *place)
{
	const char *text = f->kind == TEXT ? *(char *const *)place : NULL;
	uint64_t number = f->kind == NUMBER ? *(const uint64_t *)place : 0;

	if (f->kind == WORDS)
		return encode_list(*(char **const *)place);
	if (f->kind == FLAG)
		return *(const bool *)place ? json_true() : NULL;
	if (f->kind == TEXT)
		return text ? json_string(text) : NULL;
	return number ? json_integer((json_int_t)number) : NULL;
}

char *run_request_to_json(const struct run_request *request)
{
	json_auto_t *j = json_object();
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		set_member(j, fields[i].name,
		           encode_field(&fields[i], (const char *)request + fields[i].offset));
	if (request->stdin_len > 0)
		set_member(j, "stdin", encode_bytes(request->stdin_data, request->stdin_len));
	set_member(j, "files", encode_files(request));
	text = json_dumps(j, JSON_COMPACT);
	assert(text);
	return text;
}

/* Reject the whole text if any part is not as the encoder writes it: half a request is not what the
 * caller asked for. */

/* Return: owned, NUL-terminated; NULL: invalid. */
static char *bytes_of(const json_t *j, size_t *ret_len)
{
	return json_is_string(j)
	               ? base64_decode(json_string_value(j), json_string_length(j), ret_len)
	               : NULL;
}

/* Rejects NUL. */
static char *word_of(const json_t *j)
{
	size_t len = 0;
	char *word = bytes_of(j, &len);

	if (word && strlen(word) == len)
		return word;
	free(word);
	return NULL;
}

static int read_list(const json_t *list, char ***ret_words)
{
	size_t count = json_array_size(list);

	*ret_words = xcalloc(count + 1, sizeof(**ret_words));
	for (size_t i = 0; i < count; i++) {
		(*ret_words)[i] = word_of(json_array_get(list, i));
		if (!(*ret_words)[i])
			return -EBADMSG;
	}
	return json_is_array(list) ? 0 : -EBADMSG;
}

static int read_field(const json_t *value, const struct field *f, void *place)
{
	if (f->kind == WORDS)
		return read_list(value, place);
	if (f->kind == TEXT && json_is_string(value))
		*(char **)place = xstrdup(json_string_value(value));
	else if (f->kind == FLAG && json_is_boolean(value))
		*(bool *)place = json_is_true(value);
	else if (f->kind == NUMBER && json_is_integer(value) && json_integer_value(value) >= 0)
		*(uint64_t *)place = (uint64_t)json_integer_value(value);
	else
		return -EBADMSG;
	return 0;
}

static int read_files(const json_t *j, struct run_request *r)
{
	const json_t *list = json_object_get(j, "files");
	size_t count = json_array_size(list);

	if (!list)
		return 0;
	if (count == 0) /* the encoder omits it */
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
	const json_t *data = json_object_get(j, "stdin");

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const json_t *value = json_object_get(j, fields[i].name);

		if (value && read_field(value, &fields[i], (char *)r + fields[i].offset) < 0)
			return -EBADMSG;
	}
	if (data)
		r->stdin_data = bytes_of(data, &r->stdin_len);
	if (data && !r->stdin_data)
		return -EBADMSG;
	return read_files(j, r);
}

int run_request_from_json(const char *text, struct run_request *ret_request, struct error *err)
{
	json_auto_t *j = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct run_request r = {0};

	if (!json_is_object(j) || read_request(j, &r) < 0) {
		run_request_done(&r);
		return error_set(err, ERR_STORAGE, 0, "the stored request is damaged");
	}
	*ret_request = r;
	return 0;
}
