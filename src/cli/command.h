/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one command, one file, one record. Parsing, --help, completion and the check of the manual
 * page use these records.
 */

#include "cli/exit_status.h"
#include "cli/options.h"
#include <stddef.h>
#include <stdio.h>

struct command {
	const char *name;      /* "run", "box plan" */
	const char *arguments; /* for the usage line; "": the command takes none */
	const char *summary;   /* one line */
	/* Return: the exit status, or -1 with *err, which the caller prints. */
	int (*run)(const void *values, const struct args *args, struct error *err);
	struct options options;
	size_t values_size; /* size of the struct that the options fill; at least 1 */
	const void *data;   /* args->data of @run, for a function that several commands share */
	const char *text;   /* --help prints it after the options; NULL: none */
};

/* Defines command_@id, whose options @rows_ fill a @type. The rest may set text and data. */
#define COMMAND(id, name_, arguments_, summary_, run_, rows_, type, ...)                           \
	const struct command command_##id = {.name = (name_),                                      \
	                                     .arguments = (arguments_),                            \
	                                     .summary = (summary_),                                \
	                                     .run = (run_),                                        \
	                                     .options = {(rows_), ARRAY_SIZE(rows_)},              \
	                                     .values_size = sizeof(type),                          \
	                                     __VA_ARGS__}

/* In the order of --help. */
/* clang-format off */
#define COMMANDS(X) \
	X(run) X(sandbox_run) \
	X(session_create) X(session_list) X(session_show) X(session_exec) X(session_interrupt) \
	X(session_pause) X(session_resume) X(session_terminate) X(session_delete) \
	X(file_ls) X(file_stat) X(file_get) X(file_put) X(file_mkdir) X(file_mv) X(file_rm) \
	X(template_list) X(template_show) X(template_create) X(template_update) \
	X(template_delete) X(template_import) X(template_imports) X(mcp) \
	X(key_create) X(key_list) X(key_revoke) \
	X(tenant_create) X(tenant_list) X(tenant_show) X(tenant_set) X(tenant_delete) \
	X(audit_verify) X(audit_tail) \
	X(policy_explain) X(policy_check) X(policy_list) X(policy_show) \
	X(pool_list) X(doctor) X(box_plan) X(completion) X(version) X(help)
/* clang-format on */

#define COMMAND_DECLARE(id) extern const struct command command_##id;
COMMANDS(COMMAND_DECLARE)

/** commands_at - the table in the order of --help; NULL past the end. */
const struct command *commands_at(size_t index);
/** commands_find - the command that @argv begins with. Return: words in its name; 0: none. */
size_t commands_find(char *const *argv, const struct command **ret_command);
/** commands_refuse - ERR_INVALID for an unknown command, with a suggestion. Return: -1. */
int commands_refuse(char *const *argv, struct error *err);
/** commands_print_list - print the overview of "millibox help". */
void commands_print_list(FILE *out);
/** commands_print_help - print the text of "millibox COMMAND --help". */
void commands_print_help(const struct command *command, FILE *out);
/** commands_print_group - print the help of all commands of @group. Return: how many. */
size_t commands_print_group(const char *group, FILE *out);
/** commands_call - run a command; @argv follows its name. Return: the exit status. */
int commands_call(const struct command *command, char **argv);
/** commands_main - run the command that @argv names. Return: the exit status. */
int commands_main(char **argv);
