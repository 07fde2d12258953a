/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/*
 * The script is made from the tables, so it cannot fall behind them. It completes the words of
 * commands, then the options of the command that was typed, then file names.
 */

static void print_words(void)
{
	const struct command *command;

	(void)fputs("\tlocal commands='", stdout);
	for (size_t i = 0; (command = commands_at(i)); i++)
		(void)fprintf(stdout, "%.*s ", (int)strcspn(command->name, " "), command->name);
	(void)fputs("'\n", stdout);
}

/* One arm of the case: the command's words, then what may follow. */
static void print_arm(const struct command *command)
{
	const char *second = strchr(command->name, ' ');

	if (second) {
		(void)fprintf(stdout, "\t'%.*s ') words='%s' ;;\n", (int)(second - command->name),
		              command->name, second + 1);
	}
	(void)fprintf(stdout, "\t'%s%s') words='--help", command->name, second ? "" : " ");
	for (size_t i = 0; i < command->options.count; i++)
		(void)fprintf(stdout, " --%s", command->options.rows[i].name);
	(void)fputs("' ;;\n", stdout);
}

static void print_bash(void)
{
	const struct command *command;

	(void)fputs("# bash completion for millibox; made by 'millibox completion bash'.\n"
	            "_millibox()\n{\n"
	            "\tlocal current=${COMP_WORDS[COMP_CWORD]} words=''\n",
	            stdout);
	print_words();
	(void)fputs("\tif ((COMP_CWORD == 1)); then\n"
	            "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands --help --version\" -- "
	            "\"$current\")\n"
	            "\t\treturn\n\tfi\n"
	            "\tlocal second=''\n"
	            "\t((COMP_CWORD > 2)) && [[ ${COMP_WORDS[1]} == box ]] && "
	            "second=${COMP_WORDS[2]}\n"
	            "\tcase \"${COMP_WORDS[1]} $second\" in\n",
	            stdout);
	for (size_t i = 0; (command = commands_at(i)); i++)
		print_arm(command);
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
