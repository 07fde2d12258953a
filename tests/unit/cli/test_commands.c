/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

static size_t find(char *first, char *second, const struct command **ret_command)
{
	char *argv[] = {first, second, NULL};

	return commands_find(argv, ret_command);
}

static void commands_match_by_all_words(void **state)
{
	const struct command *command = NULL;
	char run[] = "run", box[] = "box", plan[] = "plan", ru[] = "ru", runs[] = "runs";

	(void)state;
	assert_int_equal(find(run, plan, &command), 1);
	assert_ptr_equal(command, &command_run);
	assert_int_equal(find(box, plan, &command), 2);
	assert_ptr_equal(command, &command_box_plan);
	assert_int_equal(find(box, NULL, &command), 0);
	assert_int_equal(find(box, run, &command), 0);
	assert_int_equal(find(plan, NULL, &command), 0);
	assert_int_equal(find(ru, NULL, &command), 0);
	assert_int_equal(find(runs, NULL, &command), 0);
	assert_int_equal(find(NULL, NULL, &command), 0);
}

static void words_for_removal_are_the_same(void **state)
{
	static const struct {
		char first[16], second[16];
		const char *name; /* NULL: none */
	} cases[] = {
		{"session", "rm", "session delete"},
		{"session", "remove", "session delete"},
		{"secret", "delete", "secret rm"},
		{"file", "delete", "file rm"},
		{"key", "rm", NULL},
		/* is revoked */ {"rm", "", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct command *command = NULL;
		char first[16], second[16];

		memcpy(first, cases[i].first, sizeof(first));
		memcpy(second, cases[i].second, sizeof(second));
		assert_int_equal(find(first, second[0] ? second : NULL, &command),
		                 cases[i].name ? 2 : 0);
		if (cases[i].name)
			assert_string_equal(command->name, cases[i].name);
	}
}

static void unknown_commands_get_a_suggestion(void **state)
{
	static const struct {
		char first[16], second[16];
		const char *part;
	} cases[] = {
		{"rum", "", "did you mean 'run'?"},
		{"docotr", "", "did you mean 'doctor'?"},
		{"box", "", "incomplete command 'box'; expected one of: plan"},
		{"audit", "", "expected one of: verify, tail"},
		{"box", "pln", "unknown command 'box pln'; expected one of: plan"},
		{"bxo", "plan", "did you mean 'box plan'?"},
		{"exec", "", "did you mean 'session exec'?"},
		{"sessions", "", "did you mean 'session list'?"},
		{"start", "", "did you mean 'up -d'?"},
		{"stop", "", "did you mean 'down'?"},
		{"ps", "", "did you mean 'top'?"},
		{"logs2", "", "did you mean 'logs'?"},
		{"zzz", "", "unknown command 'zzz'"},
		{"--url", "http://h", "'--url' stands before a command: options follow it"},
		{"-v", "", "'-v' stands before a command: options follow it"},
		{"", "", "unknown command ''"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char first[16], second[16];
		char *argv[] = {first, cases[i].second[0] ? second : NULL, NULL};
		struct error err = {0};

		memcpy(first, cases[i].first, sizeof(first));
		memcpy(second, cases[i].second, sizeof(second));
		assert_int_equal(commands_refuse(argv, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (!strstr(err.msg, cases[i].part))
			fail_msg("'%s' is not in '%s'", cases[i].part, err.msg);
	}
}

static void check_row(const struct command *command, const struct option_row *row)
{
	const struct options *options = &command->options;

	assert_true(strlen(row->name) > 1 && strlen(row->help) > 0);
	assert_true(options_is_flag(row) == (row->value == NULL));
	assert_true(row->offset < command->values_size);
	assert_true(row->letter == 0 ||
	            (islower((unsigned char)row->letter) && row->letter != 'h'));
	assert_string_not_equal(row->name, "help");
	for (const struct option_row *other = options->rows; other < row; other++) {
		assert_string_not_equal(other->name, row->name);
		assert_true(other->letter == 0 || other->letter != row->letter);
		assert_true(other->offset != row->offset || other->kind == OPTION_IGNORED ||
		            row->kind == OPTION_IGNORED);
	}
}

static void the_tables_are_consistent(void **state)
{
	const struct command *command;
	size_t count = 0;

	(void)state;
	for (; (command = commands_at(count)); count++) {
		assert_non_null(command->run);
		assert_non_null(command->arguments);
		assert_true(command->values_size > 0);
		assert_true(strlen(command->summary) > 0);
		for (size_t i = 0; i < command->options.count; i++)
			check_row(command, &command->options.rows[i]);
	}
	assert_true(count >= 6);
	assert_null(commands_at(count + 1));
}

static void help_names_the_command_and_its_options(void **state)
{
	const struct command *command;

	(void)state;
	for (size_t i = 0; (command = commands_at(i)); i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		commands_print_help(command, out);
		assert_int_equal(fclose(out), 0);
		assert_non_null(strstr(text, command->name));
		assert_non_null(strstr(text, command->summary));
		assert_non_null(strstr(text, "--help"));
		for (size_t j = 0; j < command->options.count; j++)
			assert_non_null(strstr(text, command->options.rows[j].name));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_match_by_all_words),
		cmocka_unit_test(words_for_removal_are_the_same),
		cmocka_unit_test(unknown_commands_get_a_suggestion),
		cmocka_unit_test(the_tables_are_consistent),
		cmocka_unit_test(help_names_the_command_and_its_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
