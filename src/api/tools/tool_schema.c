/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool.h"

#include "api/json/json.h"
#include "base/str.h"
#include <math.h>
#include <string.h>

#define DIALECT "https://json-schema.org/draft/2020-12/schema"

static const struct {
	const char *name; /* NULL: any type is right */
	const char *what; /* "must be ..." */
} types[] = {
	[TOOL_STRING] = {"string", "a string"},  [TOOL_INTEGER] = {"integer", "a whole number"},
	[TOOL_NUMBER] = {"number", "a number"},  [TOOL_BOOLEAN] = {"boolean", "true or false"},
	[TOOL_OBJECT] = {"object", "an object"}, [TOOL_STRINGS] = {"array", "a list of strings"},
	[TOOL_LIST] = {"array", "a list"},       [TOOL_ANY] = {NULL, "there"},
};
static_assert(ARRAY_SIZE(types) == TOOL_TYPE_COUNT, "every type has its row");

static void append(json_t *list, json_t *item)
{
	int r = json_array_append_new(list, item);

	assert(r == 0);
	(void)r;
}

static json_t *word_list(const char *const *words)
{
	json_t *list = json_array();

	for (; *words; words++)
		append(list, json_string(*words));
	return list;
}

/* Whole numbers are told as such. */
static json_t *bound(double value)
{
	return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

/* What a result does not have is null. */
static json_t *type_of(const struct tool_field *f, bool nullable)
{
	json_t *both;

	if (!nullable)
		return json_string(types[f->type].name);
	both = json_array();
	append(both, json_string(types[f->type].name));
	append(both, json_string("null"));
	return both;
}

static json_t *view_field(const struct tool_field *f, bool nullable)
{
	json_t *j = json_object();

	if (types[f->type].name)
		json_set(j, "type", type_of(f, nullable));
	if (f->help)
		json_set(j, "description", json_string(f->help));
	if (f->type == TOOL_STRINGS)
		json_set(j, "items", json_pack("{s:s}", "type", "string"));
	if (f->words)
		json_set(j, "enum", word_list(f->words));
	if (f->min < f->max) {
		json_set(j, "minimum", bound(f->min));
		json_set(j, "maximum", bound(f->max));
	}
	if (f->fallback)
		json_set(j, "default", json_loads(f->fallback, JSON_DECODE_ANY, NULL));
	return j;
}

static json_t *view_fields(const struct tool_field *fields, bool nullable)
{
	json_t *j = json_object(), *properties = json_object(), *required = json_array();

	for (const struct tool_field *f = fields; f && f->name; f++) {
		json_set(properties, f->name, view_field(f, nullable));
		if (f->required && !nullable)
			append(required, json_string(f->name));
	}
	json_set(j, "type", json_string("object"));
	json_set(j, "properties", properties);
	if (json_array_size(required) > 0)
		json_set(j, "required", json_incref(required));
	json_decref(required);
	return j;
}

json_t *tool_input_schema(const struct tool *tool)
{
	json_t *j = view_fields(tool->input, false);

	json_set(j, "$schema", json_string(DIALECT));
	json_set(j, "additionalProperties", json_false());
	return j;
}

json_t *tool_output_schema(const struct tool *tool)
{
	json_t *j = view_fields(tool->output, true);

	json_set(j, "$schema", json_string(DIALECT));
	return j;
}

json_t *tool_view(const struct tool *tool)
{
	json_t *j = json_object(), *hints = json_object();

	json_set(hints, "title", json_string(tool->title));
	json_set(hints, "readOnlyHint", json_boolean(tool->hints & TOOL_READ_ONLY));
	json_set(hints, "destructiveHint", json_boolean(tool->hints & TOOL_DESTRUCTIVE));
	json_set(hints, "idempotentHint", json_boolean(tool->hints & TOOL_IDEMPOTENT));
	json_set(hints, "openWorldHint", json_boolean(tool->hints & TOOL_OPEN_WORLD));
	json_set(j, "name", json_string(tool->name));
	json_set(j, "title", json_string(tool->title));
	json_set(j, "description", json_string(tool->description));
	json_set(j, "inputSchema", tool_input_schema(tool));
	json_set(j, "outputSchema", tool_output_schema(tool));
	json_set(j, "annotations", hints);
	return j;
}

/* Arguments. */

static bool is_strings(const json_t *value)
{
	if (!json_is_array(value))
		return false;
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!json_is_string(json_array_get(value, i)))
			return false;
	return true;
}

/* 5.0 is a whole number too: some clients know no other numbers. */
static bool is_whole(const json_t *value)
{
	return json_is_integer(value) ||
	       (json_is_real(value) && json_real_value(value) == floor(json_real_value(value)));
}

static bool is_of_type(enum tool_type type, const json_t *value)
{
	switch (type) {
	case TOOL_STRING:
		return json_is_string(value) &&
		       strlen(json_string_value(value)) == json_string_length(value);
	case TOOL_INTEGER:
		return is_whole(value);
	case TOOL_NUMBER:
		return json_is_number(value);
	case TOOL_BOOLEAN:
		return json_is_boolean(value);
	case TOOL_OBJECT:
		return json_is_object(value);
	case TOOL_STRINGS:
		return is_strings(value);
	case TOOL_LIST:
		return json_is_array(value);
	case TOOL_ANY:
	case TOOL_TYPE_COUNT:
		break;
	}
	return true;
}

static int check_word(const struct tool_field *f, const char *word, struct error *err)
{
	char list[160] = "";
	size_t used = 0;

	for (const char *const *w = f->words; *w; w++) {
		if (str_equal(*w, word))
			return 0;
		if (used + strlen(*w) + 3 < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
			                         used ? ", " : "", *w);
	}
	return error_field(err, f->name, "must be one of %s", list);
}

static int check_field(const struct tool_field *f, const json_t *value, struct error *err)
{
	double number = json_number_value(value);

	if (!is_of_type(f->type, value))
		return error_field(err, f->name, "must be %s", types[f->type].what);
	if (f->words)
		return check_word(f, json_string_value(value), err);
	if (f->min < f->max && !(number >= f->min && number <= f->max))
		return error_field(err, f->name, "must be %.15g to %.15g", f->min, f->max);
	return 0;
}

static const struct tool_field *find_field(const struct tool_field *fields, const char *name)
{
	for (; fields && fields->name; fields++)
		if (str_equal(fields->name, name))
			return fields;
	return NULL;
}

static int check_known(const struct tool_field *fields, json_t *arguments, struct error *err)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(arguments, next, name, value)
	{
		const struct tool_field *f = find_field(fields, name);

		if (!f) {
			(void)error_field(err, name, "is not an argument of this tool");
			err->code = ERR_UNKNOWN_FIELD;
			return -1;
		}
		if (json_is_null(value) && f->type != TOOL_ANY)
			(void)json_object_del(arguments, name);
		else if (check_field(f, value, err) < 0)
			return -1;
	}
	return 0;
}

int tool_check_arguments(const struct tool_field *fields, json_t *arguments, struct error *err)
{
	if (check_known(fields, arguments, err) < 0)
		return -1;
	for (const struct tool_field *f = fields; f && f->name; f++) {
		if (json_object_get(arguments, f->name))
			continue;
		if (f->required)
			return error_field(err, f->name, "is missing");
		if (f->fallback)
			json_set(arguments, f->name,
			         json_loads(f->fallback, JSON_DECODE_ANY, NULL));
	}
	return 0;
}
