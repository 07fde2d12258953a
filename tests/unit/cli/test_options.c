/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "cli/options.h"

struct values {
	bool quiet;
	const char *name;
	struct option_list env;
	uint64_t memory;
	uint64_t cpu;
	uint64_t time;
	uint64_t count;
};

#define AT(member) offsetof(struct values, member)

static const struct option_row rows[] = {
	{"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "print less"},
	{"name", 'n', OPTION_TEXT, AT(name), "NAME", "a name"},
	{"env", 'e', OPTION_LIST, AT(env), "N=V", "a pair"},
	{"memory", 0, OPTION_SIZE, AT(memory), "SIZE", "bytes"},
	{"cpu", 0, OPTION_CPU, AT(cpu), "CORES", "cores"},
	{"time", 0, OPTION_DURATION, AT(time), "TIME", "time"},
	{"count", 0, OPTION_NUMBER, AT(count), "N", "number"},
	{"recursive", 'r', OPTION_IGNORED, 0, NULL, "accepted"},
};
static const struct options options = {.rows = rows, .count = ARRAY_SIZE(rows)};

static bool has_name(const void *values)
{
	return ((const struct values *)values)->name;
}

/* The second word is a program, unless --name gives it. */
static const struct options of_program = {rows, ARRAY_SIZE(rows), 2, has_name};

struct run {
	struct values values;
	struct args args;
	struct error err;
	int r;
};

/* Splits @line at single spaces; "_" is an empty word. */
static struct run parse_as(const struct options *of, const char *line)
{
	static char text[256];
	static char *argv[32];
	struct run run = {.r = 0};
	char *rest = text;
	size_t n = 0;

	assert_true(strlen(line) < sizeof(text));
	memcpy(text, line, strlen(line) + 1);
	while (*line && (argv[n] = strsep(&rest, " "))) {
		if (strcmp(argv[n], "_") == 0)
			argv[n][0] = '\0';
		n++;
	}
	argv[n] = NULL;
	run.r = options_parse(of, argv, &run.values, &run.args, &run.err);
	return run;
}

static struct run parse(const char *line)
{
	return parse_as(&options, line);
}

static void done(struct run *run)
{
	options_done(&options, &run->values, &run->args);
	assert_null(run->values.env.items);
	assert_null(run->args.words);
}

static void no_options_leave_values_unset(void **state)
{
	struct run run = parse("");

	(void)state;
	assert_int_equal(run.r, 0);
	assert_false(run.values.quiet);
	assert_null(run.values.name);
	assert_int_equal(run.values.memory, 0);
	assert_int_equal(run.args.words_count, 0);
	assert_int_equal(run.args.rest_count, 0);
	done(&run);
}

static void each_kind_is_parsed_in_its_unit(void **state)
{
	struct run run = parse("--quiet --name x --memory 512Mi --cpu 0.5 --time 1.5 --count 7");

	(void)state;
	assert_int_equal(run.r, 0);
	assert_true(run.values.quiet);
	assert_string_equal(run.values.name, "x");
	assert_int_equal(run.values.memory, 512UL << 20);
	assert_int_equal(run.values.cpu, 500);
	assert_int_equal(run.values.time, 1500000);
	assert_int_equal(run.values.count, 7);
	done(&run);
}

static void an_ignored_flag_changes_nothing(void **state)
{
	const struct values unset = {0};
	struct run run = parse("-r --recursive x"), bad = parse("--recursive=yes");

	(void)state;
	assert_int_equal(run.r, 0);
	assert_memory_equal(&run.values, &unset, sizeof(unset));
	assert_int_equal(run.args.words_count, 1);
	assert_int_equal(bad.r, -1);
	assert_string_equal(bad.err.msg, "--recursive takes no value");
	done(&run);
	done(&bad);
}

static void values_may_be_attached(void **state)
{
	struct run run = parse("--name=a=b -eX=1 -e Y=2 --env=Z=");

	(void)state;
	assert_int_equal(run.r, 0);
	assert_string_equal(run.values.name, "a=b");
	assert_int_equal(run.values.env.count, 3);
	assert_string_equal(run.values.env.items[0], "X=1");
	assert_string_equal(run.values.env.items[1], "Y=2");
	assert_string_equal(run.values.env.items[2], "Z=");
	done(&run);
}

static void a_value_may_look_like_an_option(void **state)
{
	struct run run = parse("-n --quiet");

	(void)state;
	assert_int_equal(run.r, 0);
	assert_string_equal(run.values.name, "--quiet");
	assert_false(run.values.quiet);
	done(&run);
}

static void words_and_options_mix_and_a_dash_is_a_word(void **state)
{
	struct run run = parse("one -q - _ two");

	(void)state;
	assert_int_equal(run.r, 0);
	assert_true(run.values.quiet);
	assert_int_equal(run.args.words_count, 4);
	assert_string_equal(run.args.words[0], "one");
	assert_string_equal(run.args.words[1], "-");
	assert_string_equal(run.args.words[2], "");
	assert_string_equal(run.args.words[3], "two");
	done(&run);
}

static void all_words_after_a_program_are_its_arguments(void **state)
{
	static const struct {
		const char *line;
		size_t words, rest;
		const char *first; /* argument */
		bool quiet;
	} rows_of[] = {
		{"s a.py -q x", 2, 2, "-q", false},    {"s -q a.py -- -q", 2, 1, "-q", true},
		{"s - -h", 2, 1, "-h", false},         {"s -n c x -q", 1, 2, "x", false},
		{"-n c s -q", 1, 0, NULL, true},       {"-n c s -q x", 1, 1, "x", true},
		{"s -n c -- -q x", 1, 2, "-q", false}, {"s", 1, 0, NULL, false},
		{"s -- a.py -q x", 2, 2, "-q", false}, {"-q -- s -q -- x", 2, 2, "--", true},
		{"-n c -- s -q", 1, 1, "-q", false},   {"s --", 1, 0, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows_of); i++) {
		struct run run = parse_as(&of_program, rows_of[i].line);

		assert_int_equal(run.r, 0);
		assert_int_equal(run.args.words_count, rows_of[i].words);
		assert_int_equal(run.args.rest_count, rows_of[i].rest);
		assert_int_equal(run.values.quiet, rows_of[i].quiet);
		if (rows_of[i].first)
			assert_string_equal(run.args.rest[0], rows_of[i].first);
		done(&run);
	}
}

static void nothing_after_two_dashes_is_an_option(void **state)
{
	struct run run = parse("word -- -q --help --nonsense --");

	(void)state;
	assert_int_equal(run.r, 0);
	assert_false(run.values.quiet);
	assert_false(run.args.help);
	assert_int_equal(run.args.words_count, 1);
	assert_int_equal(run.args.rest_count, 4);
	assert_string_equal(run.args.rest[0], "-q");
	assert_string_equal(run.args.rest[3], "--");
	done(&run);
}

static void help_stops_parsing(void **state)
{
	static const char *const lines[] = {"--help", "-h", "--quiet --help --nonsense",
	                                    "x -h --count z"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct run run = parse(lines[i]);

		assert_int_equal(run.r, 0);
		assert_true(run.args.help);
		done(&run);
	}
}

static void invalid_options_are_rejected_by_name(void **state)
{
	static const struct {
		const char *line;
		const char *part; /* of the message */
	} cases[] = {
		{"--name", "--name requires a value (NAME)"},
		{"-n", "--name requires a value (NAME)"},
		{"--quiet=yes", "--quiet takes no value"},
		{"-qx", "--quiet takes no value"},
		{"--memory lots", "--memory: 'lots' is not a size"},
		{"--memory _", "--memory: '' is not a size"},
		{"--memory 0", "--memory: must be greater than 0"},
		{"--count 0", "--count: must be greater than 0"},
		{"--count -1", "--count: '-1' is not a whole number"},
		{"--count 99999999999999999999", "--count: '99999999999999999999' is too large"},
		{"--cpu fast", "--cpu: 'fast' is not a number of cores"},
		{"--time soon", "--time: 'soon' is not a time"},
		{"--quite", "unknown option '--quite'; did you mean '--quiet'?"},
		{"--mmeory=1", "unknown option '--mmeory=1'; did you mean '--memory'?"},
		{"--halp", "did you mean '--help'?"},
		{"--zzz", "unknown option '--zzz'"},
		{"-z", "unknown option '-z'"},
		{"--name a -n b", "--name is given twice, as 'a' and as 'b'"},
		{"--time 5 --time=5", "--time is given twice, as '5' and as '5'"},
		{"--=x", "unknown option '--=x'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run run = parse(cases[i].line);

		assert_int_equal(run.r, -1);
		assert_int_equal(run.err.code, ERR_INVALID);
		if (!strstr(run.err.msg, cases[i].part))
			fail_msg("'%s': '%s' is not in '%s'", cases[i].line, cases[i].part,
			         run.err.msg);
		done(&run);
	}
}

static void values_before_an_error_are_freed(void **state)
{
	struct run run = parse("word --env A=1 --env B=2 --nonsense");

	(void)state;
	assert_int_equal(run.r, -1);
	assert_int_equal(run.values.env.count, 2);
	done(&run);
}

static void help_has_a_line_for_every_row(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	options_print_help(&options, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "-q, --quiet "));
	assert_non_null(strstr(text, "    --memory SIZE "));
	assert_non_null(strstr(text, "-h, --help "));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_options_leave_values_unset),
		cmocka_unit_test(each_kind_is_parsed_in_its_unit),
		cmocka_unit_test(an_ignored_flag_changes_nothing),
		cmocka_unit_test(values_may_be_attached),
		cmocka_unit_test(a_value_may_look_like_an_option),
		cmocka_unit_test(words_and_options_mix_and_a_dash_is_a_word),
		cmocka_unit_test(nothing_after_two_dashes_is_an_option),
		cmocka_unit_test(all_words_after_a_program_are_its_arguments),
		cmocka_unit_test(help_stops_parsing),
		cmocka_unit_test(invalid_options_are_rejected_by_name),
		cmocka_unit_test(values_before_an_error_are_freed),
		cmocka_unit_test(help_has_a_line_for_every_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
