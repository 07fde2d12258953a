/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one command, one file, one record. Used for parsing, --help, completion and the manual page.
 */

#include "cli/exit_status.h"
#include "cli/options.h"
#include <stddef.h>
#include <stdio.h>

struct command {
	const char *name;      /* "run", "box plan" */
	const char *arguments; /* usage line; "": none */
	const char *summary;
	/* Return: exit status, or -1 with *err, which the caller prints. */
	int (*run)(const void *values, const struct args *args, struct error *err);
	struct options options;
	size_t values_size; /* of the struct that the options fill; at least 1 */
	const void *data;   /* args->data, for a shared @run */
	const char *text;   /* after the options; each line is a paragraph; NULL: none */
};

/*
 * Defines command_@id; options @rows_ fill a @type. The rest may set text, data and members of
 * options.
 */
#define COMMAND(id, name_, arguments_, summary_, run_, rows_, type, ...)                           \
	const struct command command_##id = {.name = (name_),                                      \
	                                     .arguments = (arguments_),                            \
	                                     .summary = (summary_),                                \
	                                     .run = (run_),                                        \
	                                     .options.rows = (rows_),                              \
	                                     .options.count = ARRAY_SIZE(rows_),                   \
	                                     .values_size = sizeof(type),                          \
	                                     __VA_ARGS__}

/* In the order of --help. */
/* clang-format off */
#define COMMANDS(X) \
	X(run) X(repl) X(shell) X(sandbox_run) X(up) X(down) X(status) \
	X(session_create) X(session_list) X(session_show) X(session_exec) X(session_install) X(session_interrupt) \
	X(session_pause) X(session_resume) X(session_terminate) X(session_delete) \
	X(execution_list) X(execution_show) X(execution_logs) X(execution_cancel) X(cancel) X(logs) X(why) X(receipt_verify) X(receipt_key) X(stats) X(top) \
	X(port) X(cp) X(file_ls) X(file_stat) X(file_cat) X(file_get) X(file_put) X(file_mkdir) X(file_mv) X(file_rm) \
	X(template_list) X(template_show) X(template_create) X(template_update) \
	X(template_delete) X(template_import) X(template_imports) X(template_build) \
	X(package_install) X(package_list) X(package_show) X(package_rm) X(mcp) \
	X(secret_set) X(secret_list) X(secret_rm) \
	X(key_create) X(key_list) X(key_revoke) \
	X(tenant_create) X(tenant_list) X(tenant_show) X(tenant_set) X(tenant_delete) \
	X(audit_verify) X(audit_tail) \
	X(policy_explain) X(policy_check) X(policy_list) X(policy_show) \
	X(languages) X(pool_list) X(gateway_list) X(config_show) X(config_validate) X(config_generate) X(doctor) X(box_plan) X(completion) X(version) X(help)
/* clang-format on */

#define COMMAND_DECLARE(id) extern const struct command command_##id;
COMMANDS(COMMAND_DECLARE)

/** commands_at - NULL past the end. */
const struct command *commands_at(size_t index);
/** commands_find - by the start of @argv. Return: words in its name; 0: none. */
size_t commands_find(char *const *argv, const struct command **ret_command);
/** commands_refuse - ERR_INVALID with a suggestion. Return: -1. */
int commands_refuse(char *const *argv, struct error *err);
void commands_print_list(FILE *out);
void commands_print_help(const struct command *command, FILE *out);
/** commands_print_group - Return: number of commands. */
size_t commands_print_group(const char *group, FILE *out);
/** commands_call - @argv follows the name. Return: exit status. */
int commands_call(const struct command *command, char **argv);
/** commands_main - Return: exit status. */
int commands_main(char **argv);
