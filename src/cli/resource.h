/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: requests about keys, tenants, templates, sessions and files. A struct resource is data:
 * path, options that form a request body, columns of a list. The commands of all resources share
 * these functions.
 *
 * Like commands, they return an exit status, or -1 with *err.
 */

#include "cli/client/daemon.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "client/millibox.h"

/* How an option becomes JSON; options not given are left out. */
enum resource_kind {
	RESOURCE_TEXT,    /* const char * */
	RESOURCE_WORDS,   /* const char *: "a,b" as a list */
	RESOURCE_BOOL,    /* const char *: yes or no */
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
	const char *within; /* object in the body; NULL: the body */
};

struct resource_column {
	const char *title;
	const char *key;
	const char *within; /* object in the item; NULL: the item */
	int width;          /* 0: the last column */
};

struct resource {
	const char *base;     /* "/api/v1/tenants" */
	const char *what;     /* "tenant name" */
	const char *list;     /* key of the list */
	const char *name_key; /* key of the name; NULL: the daemon assigns names */
	const struct resource_field *fields;
	size_t fields_count;
	const struct resource_column *columns;
	size_t columns_count;
};

#define RESOURCE_FIELDS(table)  .fields = (table), .fields_count = ARRAY_SIZE(table)
#define RESOURCE_COLUMNS(table) .columns = (table), .columns_count = ARRAY_SIZE(table)

/**
 * resource_call - Return: CLI_OK with the owned response. Prints an error response. With --json the
 * response is printed and *ret_answer stays NULL.
 */
int resource_call(const struct common_options *options, const struct daemon_call *call,
                  json_t **ret_answer, struct error *err);
/** resource_finish - as resource_call, for a call of @client that returned @r. */
int resource_finish(const struct common_options *options, struct millibox_client *client, int r,
                    json_t **ret_answer, struct error *err);

/* Below, @values begins with a struct common_options. */

/* For a command with only these. */
extern const struct option_row resource_rows[4];

int resource_create(const struct resource *resource, const void *values, const struct args *args,
                    json_t **ret_answer, struct error *err);
/** resource_update - send the given options by @method to the item in @args. */
int resource_update(const struct resource *resource, const char *method, const void *values,
                    const struct args *args, json_t **ret_answer, struct error *err);
int resource_show(const struct resource *resource, const void *values, const struct args *args,
                  json_t **ret_answer, struct error *err);
/* For commands whose data is a struct resource. */

int resource_run_delete(const void *values, const struct args *args, struct error *err);
/** resource_run_list - all pages. */
int resource_run_list(const void *values, const struct args *args, struct error *err);

/** resource_path - of an item, and @suffix. Return: owned, or NULL (ERR_INVALID). */
char *resource_path(const struct resource *resource, const char *id, const char *suffix,
                    struct error *err) attr_must_check;
void resource_print_titles(const struct resource *resource);
void resource_print_row(const struct resource *resource, const json_t *item);

/* Of an object that is shown. */
struct resource_line {
	const char *key;
	const char *between; /* name and value of each member; NULL: a value, as it is */
	const char *member;  /* of each item of a list; NULL: not such a list */
};

/** resource_print_object - missing and null values are skipped, and objects and lists of which
 * parts are printed if they are empty. */
void resource_print_object(const json_t *object, const struct resource_line *lines, size_t count);
/** resource_print_list - one page. */
void resource_print_list(const struct resource *resource, const json_t *answer, bool titles);

/** resource_add_fields - ERR_INVALID names the option. */
int resource_add_fields(json_t *body, const struct resource_field *fields, size_t count,
                        const void *values, struct error *err) attr_must_check;
/**
 * resource_body - JSON of @values, with @name unless NULL. Return: owned, or NULL with *err;
 * ERR_INVALID names the option.
 */
char *resource_body(const struct resource *resource, const void *values, const char *name,
                    struct error *err) attr_must_check;
/** resource_limit - of --limit; 0: @fallback. */
unsigned resource_limit(uint64_t limit, unsigned fallback);
/** resource_print_cell - lists with commas, "-" if missing. */
void resource_print_cell(const json_t *object, const char *key, int width);
