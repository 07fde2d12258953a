/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the field table describes a JSON object: one row per field with its name, type, bounds,
 * default, description and the member of a C struct that receives the value. The same rows decode
 * an object, release it, and generate its JSON schema for OpenAPI and MCP. Query parameters work
 * alike.
 *
 * A row that needs more than its type has @check, which runs after the value was stored; a
 * FIELD_CUSTOM row has only that.
 *
 * An error names the field's path ("resources.memory", "args[2]") and what it must be. Types are
 * exact: "true" is not true, and null is not "absent" (but see FIELDS_LOOSE). An unknown field is
 * an error that suggests the nearest name (but see FIELDS_OPEN and fields_decode_open). Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct field;
struct fields;

enum field_type {
	FIELD_CUSTOM,  /* only @check; see @schema */
	FIELD_STRING,  /* char *, without NUL; with AT_LEN also its size_t length */
	FIELD_WORD,    /* char *, one of @words */
	FIELD_ENUM,    /* an int or enum: the index in @words */
	FIELD_BYTES,   /* char * and size_t (AT_LEN): text, or {"base64": "..."} */
	FIELD_BOOL,    /* bool */
	FIELD_INTEGER, /* uint64_t, multiplied by @unit */
	FIELD_NUMBER,  /* double */
	FIELD_AMOUNT,  /* uint64_t: times @unit, rounded */
	FIELD_SECONDS, /* uint64_t, in microseconds */
	FIELD_SIZE,    /* uint64_t: bytes, or text like "512Mi" */
	FIELD_CPU,     /* uint64_t, in millicores: 0.5, "0.5" or "500m" */
	FIELD_STRINGS, /* char **, NULL-terminated */
	FIELD_ENV,     /* char **, NULL-terminated NAME=value; values are scalars */
	FIELD_OBJECT,  /* with @fields: a nested struct; else json_t * */
	FIELD_OBJECTS, /* pointer and count (AT_LEN) of structs of @item_size bytes */
	FIELD_LIST,    /* json_t *, an array */
	FIELD_ANY,     /* json_t * */
	FIELD_TYPE_COUNT
};

/* A value on its way into a struct. */
struct field_value {
	const struct field *field;
	const char *path; /* "resources.memory" */
	const json_t *value;
	const char *text; /* of a query, outlives *out; else NULL */
	void *out;        /* what the table describes */
	const void *ctx;  /* of fields_decode */
	/* FIELDS_OPEN and FIELDS_LOOSE of this table or one around it; FIELDS_PARTIAL */
	bool open, loose, partial;
	json_t *warnings; /* of fields_decode_open; borrowed */
	struct error *err;
};

/* Return: 0, or -1 with *err (fields_wrong). */
typedef int field_fn(const struct field_value *v);

/* In which schemas a row is. Decoding does not depend on it. */
enum field_shown {
	FIELD_SHOWN,       /* all */
	FIELD_SHOWN_FULL,  /* not in FIELDS_BRIEF: seldom needed */
	FIELD_SHOWN_BRIEF, /* only there: another name of a row */
	FIELD_SHOWN_NEVER, /* accepted: the same */
};

struct field {
	const char *name;
	enum field_type type;
	/* Offset plus 1; 0: checked, not stored. See AT. */
	size_t at, len_at, given_at;
	size_t size; /* of the member; asserted: no row writes past it */
	const char *description;
	bool required;
	bool once;     /* a number with another name: must still be 0 */
	bool not_null; /* null is not absent, despite FIELDS_LOOSE */
	bool clamp;    /* over @max counts as @max; seconds: core cuts them, none are 1 */
	bool hidden;   /* not in the schema: known only to be refused */
	enum field_shown shown;
	const char *other_name; /* satisfies @required too; a row with the same member */
	/* Of a number, or a length. max 0: no bound. */
	double min, max;
	double unit;                     /* 0: 1 */
	const char *const *words;        /* NULL-terminated */
	bool (*valid)(const char *text); /* of a string */
	const char *what;                /* "must be ..." */
	field_fn *check;
	const struct fields *fields; /* of objects */
	size_t item_size;
	const char *fallback; /* JSON for an absent field; NULL: none */
	/* Merged into the schema: core's bounds, examples. null removes a bound. */
	const char *schema;
};

/* AT(struct run_request, language). */
#define AT(type, member)                                                                           \
	.at = offsetof(type, member) + 1, .size = sizeof(__typeof__(((type *)0)->member))
/* With its length: AT_LEN(struct run_request, code, code_len). */
#define AT_LEN(type, member, len) AT(type, member), .len_at = offsetof(type, len) + 1
/* A bool: the field is given. */
#define GIVEN(type, member) .given_at = offsetof(type, member) + 1
#define FIELDS_END                                                                                 \
	{                                                                                          \
		.name = NULL                                                                       \
	}

enum fields_flag {
	FIELDS_OPEN = 1, /* ignore unknown fields */
	/* null counts as absent, and 5.0 is a whole number: some clients need it */
	FIELDS_LOOSE = 2,
	FIELDS_PARTIAL = 4, /* nothing is required: a change */
};

struct fields {
	const char *name; /* in OpenAPI; NULL: inline */
	const char *description;
	const struct field *rows; /* ends with FIELDS_END */
	unsigned flags;           /* of enum fields_flag */
};

/** fields_decode - the caller zeroes *out, and releases it in any case. @ctx is for @check. */
int fields_decode(const struct fields *fields, const json_t *object, const void *ctx, void *out,
                  struct error *err) attr_must_check;
/**
 * fields_decode_open - as fields_decode, but unknown fields are ignored and named in @warnings, an
 * array; NULL: as fields_decode.
 */
int fields_decode_open(const struct fields *fields, const json_t *object, const void *ctx,
                       json_t *warnings, void *out, struct error *err) attr_must_check;
/** fields_decode_text - from JSON text. */
int fields_decode_text(const struct fields *fields, const char *text, size_t len, const void *ctx,
                       void *out, struct error *err) attr_must_check;
/* Outlives *out; NULL: absent. */
typedef const char *field_text_fn(const void *query, const char *name);
/**
 * fields_decode_query - ignores parameters without a row. Strings are borrowed from @query: no
 * fields_done. For rows of single values.
 */
int fields_decode_query(const struct fields *fields, field_text_fn *get, const void *query,
                        void *out, struct error *err) attr_must_check;
/** fields_done - free and zero what the rows own in *out. */
void fields_done(const struct fields *fields, void *out);

/** fields_find - NULL: none. */
const struct field *fields_find(const struct fields *fields, const char *name);

/** fields_wrong - "must be @what" for the value's path. Return: always -1. */
int fields_wrong(const struct field_value *v, const char *what);
/** fields_refuse - @what for the value's path, with @code. Return: always -1. */
int fields_refuse(const struct field_value *v, enum error_code code, const char *what);
/** fields_target - NULL: the value is only checked. */
void *fields_target(const struct field_value *v);

/* For fields.c and field_types.c only. */

int fields_decode_at(const struct fields *fields, const struct field_value *object) attr_must_check;
/** field_parse - Text of another type stays text, which field_take refuses. Return: owned. */
json_t *field_parse(const struct field *field, const char *text) attr_must_check;
int field_take(const struct field_value *v) attr_must_check;
void field_release(const struct field *field, void *out);

/* fields_schema.c */

enum fields_view {
	FIELDS_INLINE,   /* everything in place, for MCP */
	FIELDS_BRIEF,    /* the same for a model, in few tokens */
	FIELDS_OPENAPI,  /* named tables are references to components */
	FIELDS_NULLABLE, /* inline; may be null, none required: a result */
};

/** fields_schema - JSON schema. Return: owned. */
json_t *fields_schema(const struct fields *fields, enum fields_view view) attr_must_check;
/** fields_parameters - OpenAPI's parameters. Return: owned. */
json_t *fields_parameters(const struct fields *fields) attr_must_check;
/** fields_components - add what FIELDS_OPENAPI refers to for types to @schemas. */
void fields_components(json_t *schemas);
