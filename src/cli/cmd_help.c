/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <stdio.h>

#include "base/alloc.h"

static int run_help(const void *values attr_unused, const struct args *args, struct error *err)
{
	const struct command *command = NULL;
	cleanup_free char **words = NULL;
	if (args->words_count == 0) {
		commands_print_list(stdout);
		return CLI_OK;
	}
	if (args->words_count == 1 && commands_print_group(args->words[0], stdout) > 0)
		return CLI_OK;
	words = xcalloc(args->words_count + 1, sizeof(*words));
	for (size_t i = 0; i < args->words_count; i++)
		words[i] = (char *)args->words[i];
	if (commands_find(words, &command) != args->words_count)
		return commands_refuse(words, err);
	commands_print_help(command, stdout);
	return CLI_OK;
}

const struct command command_help = {
	.name = "help",
	.arguments = "[COMMAND]",
	.summary = "List the commands, or show the help of one",
	.values_size = 1,
	.run = run_help,
};
