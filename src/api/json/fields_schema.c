/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/fields.h"

#include "api/json/json.h"
#include <assert.h>
#include <math.h>

#define REFERENCE "#/components/schemas/%s"

/* Their names in a schema. */
struct bounds {
	const char *min, *max;
};

static const struct bounds of_length = {"minLength", "maxLength"};
static const struct bounds of_value = {"minimum", "maximum"};
static const struct bounds of_list = {"minItems", "maxItems"};

/* What field_types.c accepts, or its usual forms. The last character of base64 has no spare bits.
 */
#define BASE64 "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
#define SIZE   "^[1-9][0-9]{0,5}([kKmMgG]i?)?B?$"
#define CORES                                                                                      \
	"^([1-9][0-9]{0,3}(\\\\.[0-9]{1,3})?|0\\\\.[1-9][0-9]{0,2}|0\\\\.0[1-9][0-9]?|[1-9][0-9]{" \
	"1,6}m)$"
#define VARIABLE "^[^=]+$"

/* @component: in OpenAPI, if more than one JSON type. */
static const struct {
	const char *schema;
	const struct bounds *bounds;
	const char *component;
} types[] = {
	[FIELD_CUSTOM] = {"{}", NULL, NULL},
	[FIELD_STRING] = {"{\"type\": \"string\"}", &of_length, NULL},
	[FIELD_WORD] = {"{\"type\": \"string\"}", NULL, NULL},
	[FIELD_ENUM] = {"{\"type\": \"string\"}", NULL, NULL},
	[FIELD_BYTES] =
		{"{\"description\": \"Text without NUL, or any bytes in base64.\", \"oneOf\": ["
                 "{\"type\": \"string\"}, {\"type\": \"object\", \"required\": "
                 "[\"base64\"], \"additionalProperties\": false, \"properties\": "
                 "{\"base64\": {\"type\": \"string\", \"contentEncoding\": \"base64\", "
                 "\"pattern\": \"" BASE64 "\"}}}]}",
                 NULL, "Bytes"},
	[FIELD_BOOL] = {"{\"type\": \"boolean\"}", NULL, NULL},
	[FIELD_INTEGER] = {"{\"type\": \"integer\"}", &of_value, NULL},
	[FIELD_NUMBER] = {"{\"type\": \"number\"}", &of_value, NULL},
	[FIELD_AMOUNT] = {"{\"type\": \"number\"}", &of_value, NULL},
	[FIELD_SECONDS] = {"{\"type\": \"number\"}", &of_value, NULL},
	[FIELD_SIZE] = {"{\"description\": \"Bytes as a number, or text like 512Mi, 1Gi, 512m, 1G "
                        "(powers of 1024).\", \"oneOf\": [{\"type\": \"integer\", \"minimum\": 1}, "
                        "{\"type\": \"string\", \"pattern\": \"" SIZE
                        "\", \"examples\": [\"512Mi\"]}]}",
                        NULL, "Size"},
	[FIELD_CPU] = {"{\"description\": \"Cores: 1, 0.5, \\\"0.5\\\" or \\\"500m\\\"; at least "
                       "0.01.\", \"oneOf\": [{\"type\": \"number\", \"minimum\": 0.01, "
                       "\"maximum\": 1000000}, {\"type\": \"string\", \"pattern\": \"" CORES
                       "\"}]}",
                       NULL, "Cpu"},
	[FIELD_STRINGS] = {"{\"type\": \"array\", \"items\": {\"type\": \"string\"}}", &of_list,
                           NULL},
	[FIELD_ENV] = {"{\"type\": \"object\", \"propertyNames\": {\"pattern\": \"" VARIABLE
                       "\"}, \"additionalProperties\": {\"type\": [\"string\", \"number\", "
                       "\"boolean\"]}}",
                       NULL, NULL},
	[FIELD_OBJECT] = {"{\"type\": \"object\"}", NULL, NULL},
	[FIELD_OBJECTS] = {"{\"type\": \"array\"}", &of_list, NULL},
	[FIELD_LIST] = {"{\"type\": \"array\"}", &of_list, NULL},
	[FIELD_ANY] = {"{}", NULL, NULL},
};
static_assert(ARRAY_SIZE(types) == FIELD_TYPE_COUNT, "every type has its row");

static json_t *parse_constant(const char *text)
{
	json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

	assert(value);
	return value;
}

static json_t *make_number(double value)
{
	return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

static void add_bounds(json_t *schema, const struct field *f)
{
	const struct bounds *bounds = types[f->type].bounds;

	if (bounds && f->min != 0)
		json_set(schema, bounds->min, make_number(f->min));
	/* "at least 0" says something only of numbers. */
	else if (bounds == &of_value && f->max != 0)
		json_set(schema, bounds->min, make_number(0));
	if (bounds && f->max != 0 && !f->clamp)
		json_set(schema, bounds->max, make_number(f->max));
}

static void add_words(json_t *schema, const char *const *words)
{
	json_t *list = json_array();

	for (; *words; words++)
		json_append(list, json_string(*words));
	json_set(schema, "enum", list);
}

static void allow_null(json_t *schema)
{
	json_t *type = json_object_get(schema, "type"), *both;

	if (!type)
		return;
	both = json_array();
	json_append(both, json_incref(type));
	json_append(both, json_string("null"));
	json_set(schema, "type", both);
}

/* A union of types costs a model more than the text that all of them accept. */
static json_t *brief_type(const struct field *f)
{
	json_t *j = parse_constant(types[f->type].schema);

	if (json_object_get(j, "oneOf")) {
		(void)json_object_clear(j);
		json_set(j, "type", json_string("string"));
	}
	return j;
}

/* As deep as the constant tables. */
// NOLINTNEXTLINE(misc-no-recursion)
static json_t *type_schema(const struct field *f, enum fields_view view)
{
	const char *component = f->fields ? f->fields->name : types[f->type].component;
	json_t *j;

	if (f->type == FIELD_OBJECTS) {
		j = parse_constant(types[f->type].schema);
		json_set(j, "items", fields_schema(f->fields, view));
		return j;
	}
	if (view == FIELDS_OPENAPI && component && !f->schema)
		return json_pack("{s:o}", "$ref", json_sprintf(REFERENCE, component));
	if (view == FIELDS_BRIEF && !f->fields)
		return brief_type(f);
	return f->fields ? fields_schema(f->fields, view) : parse_constant(types[f->type].schema);
}

static void merge_schema(json_t *schema, const char *text)
{
	cleanup_json json_t *more = parse_constant(text);
	const char *key;
	json_t *value;

	json_object_foreach (more, key, value) {
		if (json_is_null(value))
			(void)json_object_del(schema, key);
		else
			json_set(schema, key, json_incref(value));
	}
}

// NOLINTNEXTLINE(misc-no-recursion): as type_schema
static json_t *row_schema(const struct field *f, enum fields_view view)
{
	json_t *j = type_schema(f, view);

	if (view == FIELDS_NULLABLE)
		allow_null(j);
	if (f->description)
		json_set(j, "description", json_string(f->description));
	if (f->words)
		add_words(j, f->words);
	if (view != FIELDS_BRIEF)
		add_bounds(j, f);
	if (f->fallback)
		json_set(j, "default", parse_constant(f->fallback));
	if (f->schema)
		merge_schema(j, f->schema);
	return j;
}

static bool is_shown(const struct field *f, enum fields_view view)
{
	enum field_shown other = view == FIELDS_BRIEF ? FIELD_SHOWN_FULL : FIELD_SHOWN_BRIEF;

	return !f->hidden && f->shown != other && f->shown != FIELD_SHOWN_NEVER;
}

/* Tables that other systems' clients fill in: null is an absent field. */
static json_t *or_null(json_t *schema)
{
	json_t *words = json_object_get(schema, "enum"), *forms = json_object_get(schema, "oneOf");
	json_t *type = json_object_get(schema, "type");

	/* Some generators take no object as the default of what may be null. */
	if (json_is_object(json_object_get(schema, "default")))
		(void)json_object_del(schema, "default");
	if (json_object_get(schema, "$ref"))
		return json_pack("{s:[o, {s:s}]}", "oneOf", schema, "type", "null");
	if (forms)
		json_append(forms, json_pack("{s:s}", "type", "null"));
	else if (json_is_array(type))
		json_append(type, json_string("null"));
	else
		allow_null(schema);
	if (words)
		json_append(words, json_null());
	return schema;
}

static bool takes_null(const struct fields *fields, const struct field *f)
{
	return fields->flags & FIELDS_LOOSE && !f->not_null && !f->required;
}

static bool is_pointer(enum field_type type)
{
	return type == FIELD_STRING || type == FIELD_BYTES || type == FIELD_STRINGS ||
	       type == FIELD_ENV;
}

/* Two names of one member: only one of them may be given. */
static bool is_same(const struct field *f, const struct field *g)
{
	return f->at != 0 && f->at == g->at && f->type == g->type &&
	       (is_pointer(f->type) || f->once || g->once);
}

/* null is an absent field where the table takes it. */
static void demand(json_t *schema, const struct fields *fields, const struct field *f)
{
	if (takes_null(fields, f))
		json_set(json_object_get(schema, "properties"), f->name,
		         json_pack("{s:{s:s}}", "not", "type", "null"));
	json_append(json_object_get(schema, "required"), json_string(f->name));
}

static json_t *both(const struct fields *fields, const struct field *f, const struct field *g)
{
	json_t *schema = json_pack("{s:[], s:{}}", "required", "properties");

	demand(schema, fields, f);
	demand(schema, fields, g);
	if (json_object_size(json_object_get(schema, "properties")) == 0)
		(void)json_object_del(schema, "properties");
	return schema;
}

static void add_exclusions(json_t *schema, const struct fields *fields, enum fields_view view)
{
	json_t *pairs = json_array();

	for (const struct field *f = fields->rows; f->name; f++)
		for (const struct field *g = f + 1; g->name; g++)
			if (is_same(f, g) && is_shown(f, view) && is_shown(g, view))
				json_append(pairs, both(fields, f, g));
	if (json_array_size(pairs) > 0)
		json_set(schema, "not", json_pack("{s:O}", "anyOf", pairs));
	json_decref(pairs);
}

// NOLINTNEXTLINE(misc-no-recursion): as type_schema
json_t *fields_schema(const struct fields *fields, enum fields_view view)
{
	json_t *j = json_object(), *properties = json_object(), *required = json_array(), *row;
	bool optional;

	assert(fields); /* a row of FIELD_OBJECTS names its table */
	optional = view == FIELDS_NULLABLE || fields->flags & FIELDS_PARTIAL;
	for (const struct field *f = fields->rows; f->name; f++) {
		if (!is_shown(f, view))
			continue;
		row = row_schema(f, view);
		if (view == FIELDS_OPENAPI && takes_null(fields, f))
			row = or_null(row);
		json_set(properties, f->name, row);
		if (f->required && !optional)
			json_append(required, json_string(f->name));
	}
	if (fields->description)
		json_set(j, "description", json_string(fields->description));
	json_set(j, "type", json_string("object"));
	json_set(j, "properties", properties);
	if (json_array_size(required) > 0)
		json_set(j, "required", json_incref(required));
	json_decref(required);
	if (!(fields->flags & FIELDS_OPEN) && view != FIELDS_NULLABLE && view != FIELDS_BRIEF)
		json_set(j, "additionalProperties", json_false());
	if (view == FIELDS_OPENAPI)
		add_exclusions(j, fields, view);
	return j;
}

json_t *fields_parameters(const struct fields *fields)
{
	json_t *list = json_array();

	for (const struct field *f = fields->rows; f->name; f++) {
		json_t *j, *schema;

		if (!is_shown(f, FIELDS_INLINE))
			continue;
		j = json_object();
		schema = row_schema(f, FIELDS_INLINE);
		json_set(j, "name", json_string(f->name));
		json_set(j, "in", json_string("query"));
		if (f->required)
			json_set(j, "required", json_true());
		if (f->description)
			json_set(j, "description", json_string(f->description));
		(void)json_object_del(schema, "description");
		json_set(j, "schema", schema);
		json_append(list, j);
	}
	return list;
}

void fields_components(json_t *schemas)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].component)
			json_set(schemas, types[i].component, parse_constant(types[i].schema));
}
