/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "cli/command.h"
#include <jansson.h>
#include <stdio.h>

/* Prints the tables of millibox as JSON, for make-man.py: commands, options, exit statuses. */

static json_t *describe_option(const struct option_row *row)
{
	return json_pack("{s:s, s:s%, s:s?, s:s}", "name", row->name, "letter", &row->letter,
	                 (size_t)(row->letter != 0), "value", row->value, "help", row->help);
}

static json_t *describe_command(const struct command *command)
{
	json_t *options = json_array();

	for (size_t i = 0; i < command->options.count; i++)
		(void)!json_array_append_new(options, describe_option(&command->options.rows[i]));
	return json_pack("{s:s, s:s, s:s, s:s?, s:o}", "name", command->name, "arguments",
	                 command->arguments, "summary", command->summary, "text", command->text,
	                 "options", options);
}

int main(void)
{
	json_t *commands = json_array(), *statuses = json_array();
	json_auto_t *all = json_pack("{s:o, s:o}", "commands", commands, "exit_statuses", statuses);
	const struct command *command;
	const struct exit_row *row;

	for (size_t i = 0; (command = commands_at(i)); i++)
		(void)!json_array_append_new(commands, describe_command(command));
	for (size_t i = 0; (row = exit_status_row(i)); i++)
		(void)!json_array_append_new(
			statuses,
			json_pack("{s:s, s:s}", "status", row->status, "meaning", row->meaning));
	return json_dumpf(all, stdout, JSON_INDENT(1)) < 0 || putchar('\n') == EOF;
}
