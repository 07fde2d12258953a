/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how the bodies of requests are described and taken apart: a table of fields each, and for
 * each field a function that checks and copies it. Shared by the decoders; see decode.h for the
 * rules.
 */

#include "api/json/decode.h"
#include <jansson.h>
#include <stdint.h>

/* A billion seconds: beyond it the arithmetic, not the policy, would be the limit. */
#define DECODE_SECONDS_MAX 1e9

struct decode {
	const struct decode_limits *limits;
	struct decoded_exec *out;
	void *more; /* what the fields of other bodies are put into */
	struct error *err;
	bool lenient; /* fields that nobody knows are ignored, as clients of a dialect expect */
};

typedef int field_fn(struct decode *d, const char *path, const json_t *value);

struct field {
	const char *name;
	field_fn *take;
	bool required;
};

struct fields {
	const char *prefix; /* "resources.", or "" */
	const struct field *table;
	size_t count;
};

/** decode_fields - every field of @object by its row, and no other. */
int decode_fields(struct decode *d, const struct fields *fields,
                  const json_t *object) attr_must_check;
/** decode_wrong - "must be @what". Return: always -1. */
int decode_wrong(struct decode *d, const char *path, const char *what);

/** decode_refuse - as error_field, with another code. Return: always -1. */
int decode_refuse(struct decode *d, enum error_code code, const char *path, const char *what);

/* Values of one kind. */
int decode_string(struct decode *d, const char *path, const json_t *value,
                  char **ret_text) attr_must_check;
int decode_bytes(struct decode *d, const char *path, const json_t *value, char **ret_data,
                 size_t *ret_len) attr_must_check;
int decode_seconds(struct decode *d, const char *path, const json_t *value,
                   uint64_t *ret_us) attr_must_check;
int decode_bool(struct decode *d, const char *path, const json_t *value,
                bool *ret_value) attr_must_check;

/* Fields that several bodies have: into d->out. */
field_fn decode_language;
field_fn decode_code;
field_fn decode_stdin;
field_fn decode_args;
field_fn decode_files;
field_fn decode_env;
field_fn decode_timeout;
field_fn decode_resources;
field_fn decode_cpu;
field_fn decode_memory;
field_fn decode_disk;
field_fn decode_stream;
field_fn decode_network;
field_fn decode_policy;

/* decode_handler.c */
field_fn decode_handler_code;
field_fn decode_event;
field_fn decode_context;
/** decode_handler_end - after all fields: what the handler is given, its time-out, its language. */
int decode_handler_end(struct decode *d) attr_must_check;
field_fn decode_template_id;
