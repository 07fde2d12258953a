/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: command line options as tables, shared by the parser, --help, completion and the manual
 * page. Values go into the command's struct at the row's offset; strings are borrowed
 * from argv.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_kind {
	OPTION_FLAG,     /* bool */
	OPTION_IGNORED,  /* a flag without effect, for users of other programs; not stored */
	OPTION_TEXT,     /* const char * */
	OPTION_LIST,     /* struct option_list: may be repeated */
	OPTION_SIZE,     /* uint64_t bytes; 0: not given */
	OPTION_CPU,      /* uint64_t thousandths of a core; 0: not given */
	OPTION_DURATION, /* uint64_t microseconds; 0: not given */
	OPTION_NUMBER,   /* uint64_t; 0: not given */
	OPTION_KIND_COUNT
};

struct option_list {
	const char **items; /* owned; the strings are borrowed */
	size_t count;
};

struct option_row {
	const char *name; /* without dashes */
	char letter;      /* 0: no short form */
	enum option_kind kind;
	size_t offset;
	const char *value; /* placeholder in --help; NULL: a flag */
	const char *help;
};

struct options {
	const struct option_row *rows;
	size_t count;
	/* Which word names a program, whose arguments follow it; 0: none does. */
	size_t program_word;
	/* An option gave the program: at that word its arguments begin. */
	bool (*has_program)(const void *values);
};

/* The command line without options. */
struct args {
	const char **words; /* owned; in order */
	size_t words_count;
	char **rest; /* borrowed: after "--" or the program */
	size_t rest_count;
	bool help;        /* parsing stopped there */
	const void *data; /* of the command */
};

/** options_is_flag - whether it takes no value. */
bool options_is_flag(const struct option_row *row);
/**
 * options_parse - parse @argv, after the command's name, into the zeroed @values. Return: 0, or -1
 * (ERR_INVALID). Call options_done in both cases.
 */
int options_parse(const struct options *options, char **argv, void *values, struct args *ret_args,
                  struct error *err) attr_must_check;
void options_done(const struct options *options, void *values, struct args *args);
/** options_print_help - --help comes last. */
void options_print_help(const struct options *options, FILE *out);
