/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: requests about the daemon's resources: keys, tenants, templates, sessions, files. A struct
 * resource is data: its path, the options that make up a request body, and the columns of a list.
 * The create, update, show, delete and list commands of all resources share the functions below.
 *
 * As commands do, they return an exit status, or -1 with *err.
 */

#include "cli/client/api_call.h"
#include "cli/command.h"
#include "cli/common_options.h"

/* How an option becomes a JSON value; options that were not given make none. */
enum resource_kind {
	RESOURCE_TEXT,    /* const char * */
	RESOURCE_WORDS,   /* const char *: "a,b" as a list */
	RESOURCE_QUOTA,   /* const char *: a number, "default" (null), or other text */
	RESOURCE_LIST,    /* struct option_list, as a list */
	RESOURCE_ENV,     /* struct option_list of NAME=VALUE, as an object */
	RESOURCE_NUMBER,  /* uint64_t; 0: not given */
	RESOURCE_SIZE,    /* uint64_t bytes, as text; 0: not given */
	RESOURCE_CORES,   /* uint64_t thousandths; 0: not given */
	RESOURCE_SECONDS, /* uint64_t microseconds; 0: not given */
	RESOURCE_KIND_COUNT
};

struct resource_field {
	const char *option; /* for messages */
	enum resource_kind kind;
	size_t offset;
	const char *key;
	const char *within; /* the object in the body that holds it; NULL: the body itself */
};

struct resource_column {
	const char *title;
	const char *key;
	const char *within; /* the object that holds it; NULL: the item itself */
	int width;          /* 0: the last column */
};

struct resource {
	const char *base;     /* "/api/v1/tenants" */
	const char *what;     /* "tenant name" */
	const char *list;     /* key of the list in a response */
	const char *name_key; /* key of the name in a body; NULL: the daemon assigns names */
	const struct resource_field *fields;
	size_t fields_count;
	const struct resource_column *columns;
	size_t columns_count;
};

/* Initialisers of a struct resource. */
#define RESOURCE_FIELDS(table)  .fields = (table), .fields_count = ARRAY_SIZE(table)
#define RESOURCE_COLUMNS(table) .columns = (table), .columns_count = ARRAY_SIZE(table)

/**
 * resource_call - send one request. Return: CLI_OK with the owned response. On an error response
 * the problem is printed. With --json the response is printed and *ret_answer stays NULL.
 */
int resource_call(const struct common_options *options, const struct api_call *call,
                  json_t **ret_answer, struct error *err);

/* In the following, @values begins with a struct common_options. */

/* The options of a command that has only these. */
extern const struct option_row resource_rows[4];

int resource_create(const struct resource *resource, const void *values, const struct args *args,
                    json_t **ret_answer, struct error *err);
/** resource_update - send the given options by @method to the item that @args names. */
int resource_update(const struct resource *resource, const char *method, const void *values,
                    const struct args *args, json_t **ret_answer, struct error *err);
int resource_show(const struct resource *resource, const void *values, const struct args *args,
                  json_t **ret_answer, struct error *err);
/* The run functions of commands whose data is a struct resource. */

/** resource_run_delete - prints nothing on success. */
int resource_run_delete(const void *values, const struct args *args, struct error *err);
/** resource_run_list - print all pages as a table. */
int resource_run_list(const void *values, const struct args *args, struct error *err);

/** resource_print_list - print a page of items as a table. */
void resource_print_list(const struct resource *resource, const json_t *answer, bool titles);

/** resource_add_fields - add the given options to @body. ERR_INVALID names the option. */
int resource_add_fields(json_t *body, const struct resource_field *fields, size_t count,
                        const void *values, struct error *err) attr_must_check;
/**
 * resource_body - the JSON text of the options in @values, with @name unless NULL. Return: owned,
 * or NULL with *err; ERR_INVALID names the option.
 */
char *resource_body(const struct resource *resource, const void *values, const char *name,
                    struct error *err) attr_must_check;
/** resource_print_cell - print a column of @width: lists with commas, "-" for a missing value. */
void resource_print_cell(const json_t *object, const char *key, int width);
