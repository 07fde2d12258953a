/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the commands about keys, tenants, templates and files have in common. A noun is a row
 * of data: where its things are, of which options the body of a request is made, and which columns
 * a list has. The commands of all nouns are the same few functions on it.
 */

#include "cli/client/api_call.h"
#include "cli/command.h"
#include "cli/common_options.h"

/* The first member of the options of every command that is given a noun. */
struct admin_options {
	struct endpoint_options at;
	bool json;
};

/* clang-format off */
#define ADMIN_ROWS(member) \
	{"json", 0, OPTION_FLAG, member(common.json), NULL, "print the daemon's answer as it is"}, \
	ENDPOINT_ROWS(member(common.at))
/* clang-format on */

/* How an option becomes a value of JSON; options that were not given make none. */
enum admin_kind {
	ADMIN_TEXT,   /* const char * */
	ADMIN_WORDS,  /* const char *: "a,b" as a list */
	ADMIN_QUOTA,  /* const char *: a number, "default" (null), or text for the daemon to read */
	ADMIN_LIST,   /* struct option_list, as a list */
	ADMIN_ENV,    /* struct option_list of NAME=VALUE, as an object */
	ADMIN_NUMBER, /* uint64_t; 0: not given */
	ADMIN_CORES,  /* uint64_t thousandths; 0: not given */
	ADMIN_SECONDS, /* uint64_t microseconds; 0: not given */
	ADMIN_KIND_COUNT
};

struct admin_field {
	const char *option; /* for messages */
	enum admin_kind kind;
	size_t offset;
	const char *key;
	const char *within; /* object of the body that has it; NULL: the body itself */
};

struct admin_column {
	const char *title;
	const char *key;
	const char *within; /* object that has it; NULL: the thing itself */
	int width;          /* 0: the last one */
};

struct admin_noun {
	const char *base;     /* "/api/v1/tenants" */
	const char *what;     /* "name of a tenant" */
	const char *list;     /* key of the list in an answer */
	const char *name_key; /* that a body tells the name by; NULL: the daemon gives names */
	const struct admin_field *fields;
	size_t fields_count;
	const struct admin_column *columns;
	size_t columns_count;
};

/**
 * admin_call - Return: CLI_OK with an owned answer; otherwise everything was said, or is in *err.
 * With --json the answer was printed, and there is none to have.
 */
int admin_call(const struct admin_options *options, const struct api_call *call,
               json_t **ret_answer, struct error *err);

/* The commands of a noun. @values begins with a struct admin_options; as admin_call otherwise. */
int admin_create(const struct admin_noun *noun, const void *values, const struct args *args,
                 json_t **ret_answer, struct error *err);
/** admin_update - by @method, the one that @args names. */
int admin_update(const struct admin_noun *noun, const char *method, const void *values,
                 const struct args *args, json_t **ret_answer, struct error *err);
int admin_show(const struct admin_noun *noun, const void *values, const struct args *args,
               json_t **ret_answer, struct error *err);
/** admin_delete - silence is success. */
int admin_delete(const struct admin_noun *noun, const void *values, const struct args *args,
                 struct error *err);
/** admin_list - all pages, below one line of titles. */
int admin_list(const struct admin_noun *noun, const void *values, const struct args *args,
               struct error *err);

/** admin_body - owned text of the object that @values make, with @name where there is one; NULL
 * with *err: ERR_INVALID names the option. */
char *admin_body(const struct admin_noun *noun, const void *values, const char *name,
                 struct error *err) attr_must_check;
/** admin_path - @base and the one word of @args, which is an id; owned. NULL: ERR_INVALID. */
char *admin_path(const char *base, const struct args *args, const char *what, struct error *err);
/** admin_print_cell - a column of @width; lists with commas; "-" for what is not there. */
void admin_print_cell(const json_t *object, const char *key, int width);
