/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/*
 * The script is made from the tables, so it cannot fall behind them. It completes the words of
 * commands, then the options of the command that was typed, then file names.
 */

static size_t group_len(const struct command *command)
{
	return strcspn(command->name, " ");
}

/* Whether an earlier command begins with the same word. */
static bool is_repeated(size_t index)
{
	const struct command *command = commands_at(index);
	size_t len = group_len(command);

	for (size_t i = 0; i < index; i++)
		if (group_len(commands_at(i)) == len &&
		    strncmp(commands_at(i)->name, command->name, len) == 0)
			return true;
	return false;
}

/* The first words of all commands; or only of those that have a second one. */
static void print_first_words(bool groups)
{
	const struct command *command;

	for (size_t i = 0; (command = commands_at(i)); i++)
		if (!is_repeated(i) && (!groups || strchr(command->name, ' ')))
			(void)fprintf(stdout, "%.*s ", (int)group_len(command), command->name);
}

/* One arm of the case: after the first word of a group, the second ones. */
static void print_group(const struct command *first)
{
	size_t len = group_len(first);
	const struct command *command;

	(void)fprintf(stdout, "\t'%.*s ') words='", (int)len, first->name);
	for (size_t i = 0; (command = commands_at(i)); i++)
		if (strncmp(command->name, first->name, len + 1) == 0)
			(void)fprintf(stdout, "%s ", command->name + len + 1);
	(void)fputs("' ;;\n", stdout);
}

/* One arm of the case: the command's words, then what may follow. */
static void print_arm(const struct command *command)
{
	(void)fprintf(stdout, "\t'%s%s') words='--help", command->name,
	              strchr(command->name, ' ') ? "" : " ");
	for (size_t i = 0; i < command->options.count; i++)
		(void)fprintf(stdout, " --%s", command->options.rows[i].name);
	(void)fputs("' ;;\n", stdout);
}

static void print_arms(void)
{
	const struct command *command;

	for (size_t i = 0; (command = commands_at(i)); i++) {
		if (strchr(command->name, ' ') && !is_repeated(i))
			print_group(command);
		print_arm(command);
	}
}

static void print_bash(void)
{
	(void)fputs("# bash completion for millibox; made by 'millibox completion bash'.\n"
	            "_millibox()\n{\n"
	            "\tlocal current=${COMP_WORDS[COMP_CWORD]} words=''\n"
	            "\tlocal commands='",
	            stdout);
	print_first_words(false);
	(void)fputs("'\n"
	            "\tif ((COMP_CWORD == 1)); then\n"
	            "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands --help --version\" -- "
	            "\"$current\")\n"
	            "\t\treturn\n\tfi\n"
	            "\tlocal second='' groups=' ",
	            stdout);
	print_first_words(true);
	(void)fputs("'\n"
	            "\t((COMP_CWORD > 2)) && [[ $groups == *\" ${COMP_WORDS[1]} \"* ]] && "
	            "second=${COMP_WORDS[2]}\n"
	            "\tcase \"${COMP_WORDS[1]} $second\" in\n",
	            stdout);
	print_arms();
	(void)fputs("\tesac\n"
	            "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
	            "}\ncomplete -o default -F _millibox millibox\n",
	            stdout);
}

static int run(const void *values, const struct args *args, struct error *err)
{
	(void)values;
	if (args->words_count != 1 || !str_equal(args->words[0], "bash")) {
		(void)error_set(err, ERR_INVALID, 0, "give the shell: bash");
		return CLI_USAGE;
	}
	print_bash();
	return CLI_OK;
}

const struct command command_completion = {
	.name = "completion",
	.arguments = "bash",
	.summary = "Print a completion script for a shell",
	.text = "Try it with: source <(millibox completion bash)\n",
	.values_size = 1,
	.run = run,
};
