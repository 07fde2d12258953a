/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one command, one file, one record. The table is in commands.c; parsing, --help, completion
 * and the check of the manual page use these records.
 */

#include "cli/exit_status.h"
#include "cli/options.h"
#include <stddef.h>
#include <stdio.h>

struct command {
	const char *name;      /* "run", "box plan" */
	const char *arguments; /* for the usage line; "": the command takes none */
	const char *summary;   /* one line */
	const char *text;      /* --help prints it after the options; NULL: none */
	struct options options;
	size_t values_size; /* size of the struct that the options fill; at least 1 */
	/* Return: the exit status, or -1 with *err: exit_status_of_error. The caller prints *err.
	 */
	int (*run)(const void *values, const struct args *args, struct error *err);
};

extern const struct command command_run;
extern const struct command command_sandbox_run;
extern const struct command command_session_create;
extern const struct command command_session_list;
extern const struct command command_session_show;
extern const struct command command_session_exec;
extern const struct command command_session_interrupt;
extern const struct command command_session_pause;
extern const struct command command_session_resume;
extern const struct command command_session_terminate;
extern const struct command command_session_delete;
extern const struct command command_file_ls;
extern const struct command command_file_stat;
extern const struct command command_file_get;
extern const struct command command_file_put;
extern const struct command command_file_mkdir;
extern const struct command command_file_mv;
extern const struct command command_file_rm;
extern const struct command command_template_list;
extern const struct command command_template_show;
extern const struct command command_template_create;
extern const struct command command_template_update;
extern const struct command command_template_delete;
extern const struct command command_template_import;
extern const struct command command_template_imports;
extern const struct command command_mcp;
extern const struct command command_key_create;
extern const struct command command_key_list;
extern const struct command command_key_revoke;
extern const struct command command_tenant_create;
extern const struct command command_tenant_list;
extern const struct command command_tenant_show;
extern const struct command command_tenant_set;
extern const struct command command_tenant_delete;
extern const struct command command_audit_verify;
extern const struct command command_audit_tail;
extern const struct command command_policy_explain;
extern const struct command command_policy_check;
extern const struct command command_policy_list;
extern const struct command command_policy_show;
extern const struct command command_pool_list;
extern const struct command command_doctor;
extern const struct command command_box_plan;
extern const struct command command_completion;
extern const struct command command_version;
extern const struct command command_help;

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
/** commands_print_group - print the help of all commands whose first word is @group. Return: how
 * many there are. */
size_t commands_print_group(const char *group, FILE *out);
/** commands_call - run a command; @argv follows its name. Return: the exit status. */
int commands_call(const struct command *command, char **argv);
/** commands_main - run the command that @argv names. Return: the exit status. */
int commands_main(char **argv);
