/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one command, one file, one record. The table is in commands.c; parsing, --help, the
 * completion and the check of the manual page work on these records.
 */

#include "cli/exit_status.h"
#include "cli/options.h"
#include <stddef.h>
#include <stdio.h>

struct command {
	const char *name;      /* "run", "box plan" */
	const char *arguments; /* after the options, for the usage line */
	const char *summary;   /* one line */
	const char *text;      /* what --help says after the options; NULL: nothing */
	struct options options;
	size_t values_size; /* of the struct the options' offsets are in; at least 1 */
	/* Return: the exit status. A usage error is said by the caller: fill *err and return
	 * CLI_USAGE (or CLI_ERROR with *err: our failure). Without *err everything has been said.
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

/** commands_at - the table in the order of help; NULL past the end. */
const struct command *commands_at(size_t index);
/** commands_find - the command that @argv begins with. Return: words of its name, 0: none. */
size_t commands_find(char *const *argv, const struct command **ret_command);
/** commands_refuse - ERR_INVALID for an unknown name, with the nearest known one. Return: -1. */
int commands_refuse(char *const *argv, struct error *err);
/** commands_print_list - the overview that "millibox help" shows. */
void commands_print_list(FILE *out);
/** commands_print_help - what "millibox COMMAND --help" shows. */
void commands_print_help(const struct command *command, FILE *out);
/** commands_print_group - the help of all commands whose name begins with the word @group. Return:
 * how many there are. */
size_t commands_print_group(const char *group, FILE *out);
/** commands_call - one command, whose words begin at @argv. Return: the exit status. */
int commands_call(const struct command *command, char **argv);
/** commands_main - the whole program. Return: the exit status. */
int commands_main(char **argv);
