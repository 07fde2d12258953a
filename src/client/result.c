/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handle.h"

#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "json/json_dump.h"

/* Text that is made of the object when it is first asked for. */
struct made {
	struct made *next; /* owned */
	char *name;        /* owned: what it was made of */
	char *data;        /* owned */
	size_t len;
};

struct millibox_result {
	json_t *object;     /* owned */
	struct made **made; /* owned list: accessors of a const handle add to it */
};

struct millibox_result *result_new(json_t *object)
{
	struct millibox_result *result = NEW(struct millibox_result);

	result->object = object;
	result->made = NEW(struct made *);
	return result;
}

void millibox_result_free(struct millibox_result *result)
{
	struct made *next;

	if (!result)
		return;
	for (struct made *made = *result->made; made; made = next) {
		next = made->next;
		free(made->name);
		free(made->data);
		free(made);
	}
	free(result->made);
	json_decref(result->object);
	free(result);
}

static const struct made *find_made(const struct millibox_result *result, const char *name)
{
	for (const struct made *made = *result->made; made; made = made->next)
		if (str_equal(made->name, name))
			return made;
	return NULL;
}

/* Takes @data. */
static const struct made *keep_made(const struct millibox_result *result, const char *name,
                                    char *data, size_t len)
{
	struct made *made = NEW(struct made);

	made->next = *result->made;
	made->name = xstrdup(name);
	made->data = data;
	made->len = len;
	*result->made = made;
	return made;
}

/* @value as text of its own. Return: NULL: there is none. */
static const char *json_of(const struct millibox_result *result, const char *name,
                           const json_t *value)
{
	const struct made *made = value ? find_made(result, name) : NULL;
	char *text;

	if (!value || json_is_null(value))
		return NULL;
	if (made)
		return made->data;
	text = json_dump_text(value, JSON_ENCODE_ANY);
	return text ? keep_made(result, name, text, strlen(text))->data : NULL;
}

static const json_t *member(const struct millibox_result *result, const char *key)
{
	return result ? json_object_get(result->object, key) : NULL;
}

static const char *text_member(const struct millibox_result *result, const char *key,
                               size_t *ret_len)
{
	const json_t *value = member(result, key);

	if (ret_len)
		*ret_len = json_string_length(value);
	return json_string_value(value);
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

int millibox_result_ok(const struct millibox_result *result)
{
	return str_equal(millibox_result_status(result), "success");
}

const char *millibox_result_status(const struct millibox_result *result)
{
	return or_empty(text_member(result, "status", NULL));
}

int millibox_result_exit_code(const struct millibox_result *result)
{
	const json_t *code = member(result, "exit_code");

	return json_is_integer(code) ? (int)json_integer_value(code) : -1;
}

const char *millibox_result_execution_id(const struct millibox_result *result)
{
	return or_empty(text_member(result, "execution_id", NULL));
}

const char *millibox_result_stdout(const struct millibox_result *result, size_t *ret_len)
{
	return or_empty(text_member(result, "stdout", ret_len));
}

const char *millibox_result_stderr(const struct millibox_result *result, size_t *ret_len)
{
	return or_empty(text_member(result, "stderr", ret_len));
}

/* Of the last value that has it. */
static const json_t *find_media(const struct millibox_result *result, const char *media_type)
{
	const json_t *list = member(result, "results");

	for (size_t i = json_array_size(list); media_type && i-- > 0;) {
		const json_t *content = json_object_get(json_array_get(list, i), media_type);

		if (json_is_string(content))
			return content;
	}
	return NULL;
}

const char *millibox_result_text(const struct millibox_result *result)
{
	const json_t *text = find_media(result, "text/plain");

	return text ? json_string_value(text) : millibox_result_stdout(result, NULL);
}

const char *millibox_result_value(const struct millibox_result *result)
{
	return json_of(result, "result", member(result, "result"));
}

/* Media types whose content is base64. */
static bool is_binary(const char *media_type)
{
	static const char *const types[] = {"image/png", "image/jpeg", "image/gif", "image/webp",
	                                    "application/pdf"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (str_equal(media_type, types[i]))
			return true;
	return false;
}

/* Encoders break lines. Return: owned; NULL: not base64. */
static char *decode_lines(const json_t *content, size_t *ret_len)
{
	cleanup_free char *packed = xmalloc(json_string_length(content) + 1);
	const char *text = json_string_value(content);
	size_t len = 0;

	for (; *text; text++)
		if (!strchr(" \r\n\t", *text))
			packed[len++] = *text;
	return base64_decode(packed, len, ret_len);
}

const void *millibox_result_data(const struct millibox_result *result, const char *media_type,
                                 size_t *ret_len)
{
	const json_t *content = find_media(result, media_type);
	const struct made *made;
	size_t len = json_string_length(content);
	char *data;

	if (!content)
		return NULL;
	if (!is_binary(media_type)) {
		if (ret_len)
			*ret_len = len;
		return json_string_value(content);
	}
	made = find_made(result, media_type);
	if (!made) {
		data = decode_lines(content, &len);
		if (!data)
			return NULL;
		made = keep_made(result, media_type, data, len);
	}
	if (ret_len)
		*ret_len = made->len;
	return made->data;
}

const char *millibox_result_error(const struct millibox_result *result)
{
	const json_t *error = member(result, "error");
	const char *name = json_string_value(json_object_get(error, "name"));
	const char *value = json_string_value(json_object_get(error, "value"));
	const struct made *made = name ? find_made(result, "error") : NULL;
	char *text;

	if (!name)
		return NULL;
	if (made)
		return made->data;
	text = value && *value ? xasprintf("%s: %s", name, value) : xstrdup(name);
	return keep_made(result, "error", text, strlen(text))->data;
}

const char *millibox_result_limit(const struct millibox_result *result)
{
	return text_member(result, "limit", NULL);
}

size_t millibox_result_denials(const struct millibox_result *result)
{
	return json_array_size(member(result, "denials"));
}

const char *millibox_result_denial(const struct millibox_result *result, size_t index)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "denial %zu", index);
	return json_of(result, name, json_array_get(member(result, "denials"), index));
}

const char *millibox_result_warning(const struct millibox_result *result, size_t index)
{
	return json_string_value(json_array_get(member(result, "warnings"), index));
}

const char *millibox_result_field(const struct millibox_result *result, const char *name)
{
	cleanup_free char *key = name ? xasprintf("field %s", name) : NULL;

	return key ? json_of(result, key, member(result, name)) : NULL;
}

const char *millibox_result_json(const struct millibox_result *result)
{
	return result ? json_of(result, "", result->object) : NULL;
}
