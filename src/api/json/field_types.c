/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/fields.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "json/json_dump.h"
#include <math.h>
#include <string.h>

/* Of the arithmetic, not of the policy. */
#define SECONDS_MAX 1e9
#define CORES_MAX   1e6
#define CORES_MIN   0.01

/* 2^53: beyond it a real is not one whole number. */
#define WHOLE_MAX 9007199254740992.0
#define WHAT_SIZE 160

/* Takes @text. A pointer that is set came from another name of the field. */
static int store_text(const struct field_value *v, char *text, size_t len)
{
	char **target = fields_target(v);

	if (!target || *target) {
		free(text);
		return target ? error_field(v->err, v->path, "is given twice: it has another name")
		              : 0;
	}
	*target = text;
	if (v->field->len_at)
		*(size_t *)((char *)v->out + (v->field->len_at - 1)) = len;
	return 0;
}

/* A query's text is borrowed, a body's copied. */
static int store_copy(const struct field_value *v, const char *text, size_t len)
{
	const char **target = fields_target(v);

	if (!v->text)
		return store_text(v, xmemdup0(text, len), len);
	if (target)
		*target = text;
	return 0;
}

static int store_number(const struct field_value *v, uint64_t number)
{
	uint64_t *target = fields_target(v);

	if (target && v->field->once && *target)
		return error_field(v->err, v->path, "is given twice: it has another name");
	if (target)
		*target = number;
	return 0;
}

static int store_json(const struct field_value *v)
{
	json_t **target = fields_target(v);

	if (target)
		*target = json_incref((json_t *)(uintptr_t)v->value);
	return 0;
}

static bool has_nul(const json_t *string)
{
	return memchr(json_string_value(string), '\0', json_string_length(string)) != NULL;
}

static int refuse_nul(const struct field_value *v)
{
	return error_field(v->err, v->path,
	                   "must not contain NUL; send bytes as {\"base64\": ...}");
}

static int refuse_range(const struct field_value *v, const char *before, const char *after)
{
	const struct field *f = v->field;
	char what[WHAT_SIZE];

	if (f->what)
		return fields_wrong(v, f->what);
	if (f->max == 0 || f->clamp)
		(void)snprintf(what, sizeof(what), "%sat least %.15g%s", before, f->min, after);
	else if (f->min == 0)
		(void)snprintf(what, sizeof(what), "%sat most %.15g%s", before, f->max, after);
	else
		(void)snprintf(what, sizeof(what), "%s%.15g to %.15g%s", before, f->min, f->max,
		               after);
	return fields_wrong(v, what);
}

static bool is_in_range(const struct field *f, double number)
{
	return number >= f->min && (f->max == 0 || f->clamp || number <= f->max);
}

static int check_string(const struct field_value *v)
{
	const struct field *f = v->field;
	size_t len = json_string_length(v->value);

	if (!json_is_string(v->value))
		return fields_wrong(v, "a string");
	if (has_nul(v->value))
		return refuse_nul(v);
	if (!is_in_range(f, (double)len))
		return len == 0 && f->max == 0 && !f->what
		               ? error_field(v->err, v->path, "must not be empty")
		               : refuse_range(v, "", " bytes");
	if (f->valid && !f->valid(json_string_value(v->value)))
		return fields_wrong(v, f->what ? f->what : "well-formed");
	return 0;
}

static int take_string(const struct field_value *v)
{
	if (check_string(v) < 0)
		return -1;
	return store_copy(v, v->text ? v->text : json_string_value(v->value),
	                  json_string_length(v->value));
}

static int refuse_word(const struct field_value *v)
{
	char what[WHAT_SIZE] = "";
	size_t used = 0;

	if (v->field->what)
		return fields_wrong(v, v->field->what);
	for (const char *const *w = v->field->words; *w; w++) {
		const char *between = used == 0 ? "" : w[1] ? ", " : " or ";

		if (used + strlen(*w) + 8 < sizeof(what))
			used += (size_t)snprintf(what + used, sizeof(what) - used, "%s\"%s\"",
			                         between, *w);
	}
	return fields_wrong(v, what);
}

/* Return: index in the row's words, or -1 with *err. */
static int find_word(const struct field_value *v)
{
	if (!json_is_string(v->value))
		return fields_wrong(v, "a string");
	for (int i = 0; v->field->words[i] && !has_nul(v->value); i++)
		if (str_equal(v->field->words[i], json_string_value(v->value)))
			return i;
	return refuse_word(v);
}

static int take_word(const struct field_value *v)
{
	int i = find_word(v);

	return i < 0 ? -1 : store_copy(v, v->field->words[i], strlen(v->field->words[i]));
}

static int take_enum(const struct field_value *v)
{
	int i = find_word(v), *target = fields_target(v);

	if (i >= 0 && target)
		*target = i;
	return i < 0 ? -1 : 0;
}

static int take_bytes(const struct field_value *v)
{
	const json_t *encoded = json_object_get(v->value, "base64");
	const char *text = json_string_value(encoded);
	char *data;
	size_t len;

	if (json_is_string(v->value)) {
		if (has_nul(v->value))
			return refuse_nul(v);
		len = json_string_length(v->value);
		return store_text(v, xmemdup0(json_string_value(v->value), len), len);
	}
	if (!text || json_object_size(v->value) != 1)
		return fields_wrong(v, "a string or {\"base64\": \"...\"}");
	data = base64_decode(text, json_string_length(encoded), &len);
	return data ? store_text(v, data, len)
	            : error_field(v->err, v->path, "is not valid base64");
}

static int take_bool(const struct field_value *v)
{
	bool *target = fields_target(v);

	if (!json_is_boolean(v->value))
		return fields_wrong(v, "true or false");
	if (target)
		*target = json_is_true(v->value);
	return 0;
}

static int take_integer(const struct field_value *v)
{
	double number = json_number_value(v->value), unit = v->field->unit, max = v->field->max;
	bool whole = json_is_integer(v->value) || (v->loose && json_is_real(v->value) &&
	                                           number == floor(number) && number < WHOLE_MAX);

	if (!whole || number < 0 || !is_in_range(v->field, number))
		return refuse_range(v, "a whole number, ", "");
	if (v->field->clamp && max != 0 && number > max)
		return store_number(v, (uint64_t)max);
	if (unit != 0 || json_is_real(v->value))
		return store_number(v, (uint64_t)llround(number * (unit != 0 ? unit : 1)));
	return store_number(v, (uint64_t)json_integer_value(v->value));
}

static int check_number(const struct field_value *v)
{
	bool bounded = v->field->min != 0 || v->field->max != 0;

	if (!json_is_number(v->value))
		return fields_wrong(v, "a number");
	if (bounded && !is_in_range(v->field, json_number_value(v->value)))
		return refuse_range(v, "", "");
	return 0;
}

static int take_number(const struct field_value *v)
{
	double *target = fields_target(v);

	if (check_number(v) < 0)
		return -1;
	if (target)
		*target = json_number_value(v->value);
	return 0;
}

static int take_amount(const struct field_value *v)
{
	double unit = v->field->unit != 0 ? v->field->unit : 1;

	assert(v->field->max > 0);
	if (check_number(v) < 0)
		return -1;
	return store_number(v, (uint64_t)llround(json_number_value(v->value) * unit));
}

static int take_seconds(const struct field_value *v)
{
	double seconds = json_number_value(v->value);

	if (!json_is_number(v->value))
		return fields_wrong(v, "a number of seconds");
	if (v->field->clamp)
		seconds = seconds <= 0 ? 1 : fmin(seconds, SECONDS_MAX);
	if (!(seconds > 0) || seconds > SECONDS_MAX)
		return fields_wrong(v, v->field->what
		                               ? v->field->what
		                               : "at least 0.001 and at most 1000000000 seconds");
	if (!is_in_range(v->field, seconds))
		return refuse_range(v, "", " seconds");
	return store_number(v, (uint64_t)ceil(seconds * USEC_PER_SEC));
}

static int take_size(const struct field_value *v)
{
	static const char what[] = "a size like \"512Mi\" or a number of bytes";
	const char *text = json_string_value(v->value);
	json_int_t number = json_integer_value(v->value);
	uint64_t bytes = 0;

	if (text ? has_nul(v->value) || parse_size(text, &bytes) < 0 : !json_is_integer(v->value))
		return fields_wrong(v, v->field->what ? v->field->what : what);
	if (!text)
		bytes = number > 0 ? (uint64_t)number : 0;
	return bytes > 0 ? store_number(v, bytes) : fields_wrong(v, "greater than 0");
}

static int take_cpu(const struct field_value *v)
{
	static const char what[] = "a number of cores like 0.5, \"0.5\" or \"500m\", at least 0.01";
	const char *text = json_string_value(v->value);
	double cores = json_number_value(v->value);
	uint64_t millicores = 0;

	if (text) {
		if (has_nul(v->value) || parse_cpu(text, &millicores) < 0 || millicores == 0)
			return fields_wrong(v, what);
	} else {
		if (!json_is_number(v->value) || !(cores >= CORES_MIN) || cores > CORES_MAX)
			return fields_wrong(v, what);
		millicores = (uint64_t)llround(cores * 1000);
	}
	return store_number(v, millicores);
}

/* Takes @list, as store_text does. */
static int store_list(const struct field_value *v, char **list)
{
	char ***target = fields_target(v);

	if (!target || *target) {
		str_list_free(list);
		return target ? error_field(v->err, v->path, "is given twice: it has another name")
		              : 0;
	}
	*target = list;
	return 0;
}

static int check_strings(const struct field_value *v)
{
	char path[sizeof(v->err->field)];
	struct field_value item = *v;
	const struct field any = {.type = FIELD_STRING};

	if (!json_is_array(v->value))
		return fields_wrong(v, "an array of strings");
	if (!is_in_range(v->field, (double)json_array_size(v->value)))
		return refuse_range(v, "a list of ", " strings");
	item.field = &any;
	item.path = path;
	for (size_t i = 0; i < json_array_size(v->value); i++) {
		(void)snprintf(path, sizeof(path), "%s[%zu]", v->path, i);
		item.value = json_array_get(v->value, i);
		if (check_string(&item) < 0)
			return -1;
	}
	return 0;
}

static int take_strings(const struct field_value *v)
{
	size_t count = json_array_size(v->value);
	char **list;

	if (check_strings(v) < 0)
		return -1;
	list = xcalloc(count + 1, sizeof(char *));
	for (size_t i = 0; i < count; i++)
		list[i] = xstrdup(json_string_value(json_array_get(v->value, i)));
	return store_list(v, list);
}

/* "NAME=value". Return: owned, or NULL with *err. */
static char *read_variable(const struct field_value *v, const char *name, const json_t *value)
{
	char path[sizeof(v->err->field)];
	struct field_value item = *v;
	cleanup_free char *text = NULL;

	item.path = path;
	(void)snprintf(path, sizeof(path), "%s.%s", v->path, name);
	/* A '=' would make it another variable. */
	if (name[0] == '\0' || strchr(name, '='))
		(void)error_field(v->err, path, "is not a name of a variable");
	else if (json_is_string(value) && has_nul(value))
		(void)refuse_nul(&item);
	else if (json_is_string(value))
		return xasprintf("%s=%s", name, json_string_value(value));
	else if (!json_is_number(value) && !json_is_boolean(value))
		(void)fields_wrong(&item, "a string, a number or a boolean");
	else
		text = json_dump_text(value, 0);
	return text ? xasprintf("%s=%s", name, text) : NULL;
}

static int take_env(const struct field_value *v)
{
	json_t *object = (json_t *)(uintptr_t)v->value;
	cleanup_str_list char **env = NULL;
	size_t used = 0;
	const char *name;
	json_t *value;

	if (!json_is_object(object))
		return fields_wrong(v, "an object of name: value");
	env = xcalloc(json_object_size(object) + 1, sizeof(char *));
	json_object_foreach (object, name, value) {
		env[used] = read_variable(v, name, value);
		if (!env[used++])
			return -1;
	}
	return store_list(v, TAKE_PTR(env));
}

static int take_object(const struct field_value *v)
{
	struct field_value object = *v;

	if (!json_is_object(v->value))
		return fields_wrong(v, "an object");
	if (!v->field->fields)
		return store_json(v);
	if (fields_target(v))
		object.out = fields_target(v);
	return fields_decode_at(v->field->fields, &object);
}

static int take_objects(const struct field_value *v)
{
	const struct field *f = v->field;
	size_t count = json_array_size(v->value);
	size_t *used = (size_t *)((char *)v->out + (f->len_at - 1));
	char path[sizeof(v->err->field)];
	struct field_value item = *v;
	char *items;

	if (!json_is_array(v->value))
		return fields_wrong(v, "a list of objects");
	if (!is_in_range(f, (double)count))
		return refuse_range(v, "a list of ", " objects");
	items = *(void **)fields_target(v) = xcalloc(count + !count, f->item_size);
	item.path = path;
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(path, sizeof(path), "%s[%zu]", v->path, i);
		item.value = json_array_get(v->value, i);
		item.out = items + i * f->item_size;
		*used = i + 1; /* release it even half decoded */
		if (!json_is_object(item.value))
			return fields_wrong(&item, "an object");
		if (fields_decode_at(f->fields, &item) < 0)
			return -1;
	}
	return 0;
}

static int take_list(const struct field_value *v)
{
	if (!json_is_array(v->value))
		return fields_wrong(v, "a list");
	if (!is_in_range(v->field, (double)json_array_size(v->value)))
		return refuse_range(v, "a list of ", " items");
	return store_json(v);
}

static void release_text(const struct field *f, void *target)
{
	(void)f;
	free(*(char **)target);
	*(char **)target = NULL;
}

static void release_strings(const struct field *f, void *target)
{
	(void)f;
	str_list_free(*(char ***)target);
	*(char ***)target = NULL;
}

static void release_json(const struct field *f, void *target)
{
	(void)f;
	json_decref(*(json_t **)target);
	*(json_t **)target = NULL;
}

static void release_object(const struct field *f, void *target)
{
	if (f->fields)
		fields_done(f->fields, target);
	else
		release_json(f, target);
}

/* The size of its member (0: any), and what it does. */
static const struct {
	size_t size;
	field_fn *take;
	void (*release)(const struct field *f, void *target); /* NULL: nothing is owned */
} types[] = {
	[FIELD_CUSTOM] = {0, NULL, NULL},
	[FIELD_STRING] = {sizeof(char *), take_string, release_text},
	[FIELD_WORD] = {sizeof(char *), take_word, release_text},
	[FIELD_ENUM] = {sizeof(int), take_enum, NULL},
	[FIELD_BYTES] = {sizeof(char *), take_bytes, release_text},
	[FIELD_BOOL] = {sizeof(bool), take_bool, NULL},
	[FIELD_INTEGER] = {sizeof(uint64_t), take_integer, NULL},
	[FIELD_NUMBER] = {sizeof(double), take_number, NULL},
	[FIELD_AMOUNT] = {sizeof(uint64_t), take_amount, NULL},
	[FIELD_SECONDS] = {sizeof(uint64_t), take_seconds, NULL},
	[FIELD_SIZE] = {sizeof(uint64_t), take_size, NULL},
	[FIELD_CPU] = {sizeof(uint64_t), take_cpu, NULL},
	[FIELD_STRINGS] = {sizeof(char **), take_strings, release_strings},
	[FIELD_ENV] = {sizeof(char **), take_env, release_strings},
	[FIELD_OBJECT] = {0, take_object, release_object},
	[FIELD_OBJECTS] = {sizeof(void *), take_objects, NULL},
	[FIELD_LIST] = {sizeof(json_t *), take_list, release_json},
	[FIELD_ANY] = {sizeof(json_t *), store_json, release_json},
};
static_assert(ARRAY_SIZE(types) == FIELD_TYPE_COUNT, "every type has its row");

static json_t *parse_integer(const struct field *f, const char *text)
{
	uint64_t number;

	if (parse_u64(text, &number) < 0 || (number > INT64_MAX && !f->clamp))
		return NULL;
	return json_integer(number < INT64_MAX ? (json_int_t)number : INT64_MAX);
}

static json_t *parse_boolean(const char *text)
{
	if (str_equal(text, "true") || str_equal(text, "1"))
		return json_true();
	return str_equal(text, "false") || str_equal(text, "0") ? json_false() : NULL;
}

/* Without units. */
static json_t *parse_seconds(const char *text)
{
	uint64_t us;

	if (text[strspn(text, "0123456789.")] != '\0' || parse_duration(text, &us) < 0)
		return NULL;
	return json_real((double)us / USEC_PER_SEC);
}

json_t *field_parse(const struct field *field, const char *text)
{
	json_t *value = field->type == FIELD_INTEGER   ? parse_integer(field, text)
	                : field->type == FIELD_BOOL    ? parse_boolean(text)
	                : field->type == FIELD_SECONDS ? parse_seconds(text)
	                                               : NULL;

	return value ? value : json_stringn_nocheck(text, strlen(text));
}

int field_take(const struct field_value *v)
{
	size_t size = types[v->field->type].size;

	assert(v->field->at == 0 || size == 0 || v->field->size == size);
	(void)size;
	return types[v->field->type].take(v);
}

static void release_items(const struct field *f, void *out)
{
	char **items = (char **)((char *)out + (f->at - 1));
	size_t *count = (size_t *)((char *)out + (f->len_at - 1));

	for (size_t i = 0; i < *count; i++)
		fields_done(f->fields, *items + i * f->item_size);
	*count = 0;
	release_text(f, items);
}

void field_release(const struct field *field, void *out)
{
	if (field->type == FIELD_OBJECTS)
		release_items(field, out);
	else if (types[field->type].release)
		types[field->type].release(field, (char *)out + (field->at - 1));
}
