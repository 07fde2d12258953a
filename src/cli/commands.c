/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/message.h"
#include "cli/paragraph.h"

#define COMMAND_ADDRESS(id) &command_##id,
static const struct command *const commands[] = {COMMANDS(COMMAND_ADDRESS)};

const struct command *commands_at(size_t index)
{
	return index < ARRAY_SIZE(commands) ? commands[index] : NULL;
}

/* A group has one word of a row; a user of several groups need not remember which. */
static const char *const synonyms[][4] = {
	{"rm", "delete", "remove", NULL},
	{"list", "ls", NULL},
};

static bool has_word(const char *const *row, const char *word, size_t len)
{
	for (; *row; row++)
		if (strlen(*row) == len && strncmp(word, *row, len) == 0)
			return true;
	return false;
}

static bool is_word(const char *given, const char *word, size_t len)
{
	if (strlen(given) == len && strncmp(given, word, len) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
		if (has_word(synonyms[i], given, strlen(given)) && has_word(synonyms[i], word, len))
			return true;
	return false;
}

/* Return: number of words matched, or 0. */
static size_t match_name(const char *name, char *const *argv)
{
	size_t words = 0;

	while (*name) {
		size_t len = strcspn(name, " ");

		if (!argv[words] || !is_word(argv[words], name, len))
			return 0;
		words++;
		name += len;
		name += *name == ' ';
	}
	return words;
}

size_t commands_find(char *const *argv, const struct command **ret_command)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		size_t words = match_name(commands[i]->name, argv);

		if (words == 0)
			continue;
		*ret_command = commands[i];
		return words;
	}
	return 0;
}

/* The first of two words is a group. */
static bool is_group(const char *word, const char *name)
{
	size_t len = strlen(word);

	return strncmp(word, name, len) == 0 && name[len] == ' ';
}

/* Return: second words of @group, owned; NULL: not a group. */
static char *list_group(const char *group)
{
	char *words = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		cleanup_free char *before = NULL;

		if (!is_group(group, commands[i]->name))
			continue;
		before = words;
		words = xasprintf("%s%s%s", before ? before : "", before ? ", " : "",
		                  commands[i]->name + strlen(group) + 1);
	}
	return words;
}

/* "exec" for "session exec", "sessions" for "session list". */
static bool is_short_for(const char *word, const char *name)
{
	const char *second = strchr(name, ' ');
	size_t len = second ? (size_t)(second - name) : 0;

	if (!second)
		return false;
	return str_equal(word, second + 1) ||
	       (str_equal(second + 1, "list") && strlen(word) == len + 1 && word[len] == 's' &&
	        strncmp(word, name, len) == 0);
}

/* Words of other tools for what a command of ours does. */
static const struct {
	const char *word;
	const char *command;
} foreign_words[] = {
	{"start", "up -d"},
	{"serve", "up"},
	{"stop", "down"},
	{"restart", "down"},
	{"info", "status"},
	{"ps", "top"},
	{"build", "template build"},
	{"pull", "template import"},
	{"images", "template list"},
	{"attach", "shell"},
	{"kill", "execution cancel"},
};

/* Return: NULL: none is certain. */
static const char *find_meant(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign_words); i++)
		if (str_equal(word, foreign_words[i].word))
			return foreign_words[i].command;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (is_short_for(word, commands[i]->name))
			return commands[i]->name;
	return NULL;
}

int commands_refuse(char *const *argv, struct error *err)
{
	cleanup_free char *both = argv[1] ? xasprintf("%s %s", argv[0], argv[1]) : NULL;
	cleanup_free char *words = list_group(argv[0]);
	struct suggest one = {.word = argv[0]};
	struct suggest two = {.word = both ? both : argv[0]};
	const char *meant = find_meant(argv[0]);

	if (argv[0][0] == '-')
		return error_set(err, ERR_INVALID, 0,
		                 "'%.40s' stands before a command: options follow it", argv[0]);
	if (words)
		return error_set(err, ERR_INVALID, 0, "%s '%s'; expected one of: %s",
		                 argv[1] ? "unknown command" : "incomplete command",
		                 both ? both : argv[0], words);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		suggest_offer(&one, commands[i]->name);
		suggest_offer(&two, commands[i]->name);
	}
	if (meant)
		return error_set(err, ERR_INVALID, 0, "unknown command '%s'; did you mean '%s'?",
		                 argv[0], meant);
	if (one.best || two.best)
		return error_set(err, ERR_INVALID, 0, "unknown command '%s'; did you mean '%s'?",
		                 argv[0], two.best ? two.best : one.best);
	return error_set(err, ERR_INVALID, 0, "unknown command '%s'", argv[0]);
}

void commands_print_list(FILE *out)
{
	(void)fputs("Usage: millibox COMMAND [OPTION]...\n\n"
	            "Runs untrusted code in an isolated box and reports the result.\n\nCommands:\n",
	            out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		(void)fprintf(out, "  %-17s  %s\n", commands[i]->name, commands[i]->summary);
	(void)fputc('\n', out);
	exit_status_print(out);
	(void)fputs("\nRun 'millibox COMMAND --help' for the options of a command.\n", out);
}

void commands_print_help(const struct command *command, FILE *out)
{
	(void)fprintf(out, "Usage: millibox %s [OPTION]...%s%s\n\n%s.\n\nOptions:\n", command->name,
	              command->arguments[0] ? " " : "", command->arguments, command->summary);
	options_print_help(&command->options, out);
	if (command->text) {
		(void)fputc('\n', out);
		paragraph_print(command->text, 0, out);
	}
	if (command->options.program_word > 0 && command->options.count > 0) {
		(void)fputc('\n', out);
		exit_status_print(out);
	}
}

size_t commands_print_group(const char *group, FILE *out)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!is_group(group, commands[i]->name))
			continue;
		if (count++ > 0)
			(void)fputc('\n', out);
		commands_print_help(commands[i], out);
	}
	return count;
}

static bool is_help(const char *word)
{
	return word && (str_equal(word, "--help") || str_equal(word, "-h"));
}

/* Every error ends here and is printed once. @command NULL: none found. */
static int finish(const struct command *command, int status, const struct error *err)
{
	bool has_help = command && command != &command_help;

	if (error_is_set(err))
		message_show_error(err);
	if (error_is_set(err) && status == CLI_USAGE)
		(void)fprintf(stderr, "Try 'millibox %s%s'.\n", has_help ? command->name : "help",
		              has_help ? " --help" : "");
	/* A failed write must not look like success. */
	if (fflush(stdout) != 0 && status == CLI_OK) {
		message_show("cannot write to standard output: %s", strerror(errno));
		return CLI_ERROR;
	}
	return status;
}

int commands_call(const struct command *command, char **argv)
{
	cleanup_free void *values = xcalloc(1, command->values_size);
	struct args args = {0};
	struct error err = {0};
	int status = options_parse(&command->options, argv, values, &args, &err);

	args.data = command->data;
	message_set_command(command->name);
	if (status == 0 && args.help)
		commands_print_help(command, stdout);
	else if (status == 0 && args.words_count > 0 && !command->arguments[0])
		status = error_set(&err, ERR_INVALID, 0, "unexpected argument '%s'", args.words[0]);
	else if (status == 0)
		status = command->run(values, &args, &err);
	if (status < 0)
		status = exit_status_of_error(&err);
	options_done(&command->options, values, &args);
	return finish(command, status, &err);
}

int commands_main(char **argv)
{
	const struct command *command = NULL;
	struct error err = {0};
	size_t words;

	if (!argv[0]) {
		commands_print_list(stderr);
		return CLI_USAGE;
	}
	if (is_help(argv[0]))
		return commands_call(&command_help, argv + 1);
	if (str_equal(argv[0], "--version"))
		return commands_call(&command_version, argv + 1);
	words = commands_find(argv, &command);
	if (words == 0 && is_help(argv[1]) && commands_print_group(argv[0], stdout) > 0)
		return finish(NULL, CLI_OK, &err);
	if (words == 0) {
		(void)commands_refuse(argv, &err);
		return finish(NULL, CLI_USAGE, &err);
	}
	return commands_call(command, argv + words);
}
