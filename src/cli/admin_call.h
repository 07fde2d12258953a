/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the commands about keys and tenants have in common: one request, and a few lines. */

#include "cli/api_call.h"
#include "cli/command.h"

struct admin_options {
	const char *socket;
	const char *url;
	bool json;
};

/* clang-format off */
#define ADMIN_ROWS(member) \
	{"json",   0, OPTION_FLAG, member(common.json),   NULL,   "print the daemon's answer as it is"}, \
	{"socket", 0, OPTION_TEXT, member(common.socket), "PATH", "the daemon's Unix socket"}, \
	{"url",    0, OPTION_TEXT, member(common.url),    "URL",  "the daemon's address: https://box.example:8000"}
/* clang-format on */

/**
 * admin_call - Return: CLI_OK with an owned answer; otherwise everything was said, or is in *err.
 * With --json the answer was printed, and there is none to have.
 */
int admin_call(const struct admin_options *options, const struct api_call *call,
               json_t **ret_answer, struct error *err);
/** admin_path - @base and the one word of @args, which is an id; owned. NULL: ERR_INVALID. */
char *admin_path(const char *base, const struct args *args, const char *what, struct error *err);
/** admin_print_cell - a column of @width; "-" for what is not there. */
void admin_print_cell(const json_t *object, const char *key, int width);
