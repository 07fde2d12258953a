/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/env.h"
#include "core/policy/policy.h"
#include "core/run/run.h"
#include "core/session/session.h"
#include "core_fixture.h"
#include "wire/layer.h"

struct fixture {
	struct config *config;
	struct runners *runners;
	struct driver driver;
	struct policy_rules rules;
	struct policy_stack stack;  /* none: the settings alone */
	struct run_request request; /* strings are not owned here */
	struct policy_decision decision;
	struct error err;
};

static int setup(void **state)
{
	struct fixture *f = NEW(struct fixture);

	f->config = config_load(NULL, NULL, 0, &f->err);
	if (!f->config)
		return -1;
	f->runners = fixture_runners();
	f->driver = (struct driver){.name = "native",
	                            .caps = {.layers = LAYERS_ALL,
	                                     .required_layers = 3,
	                                     .has_roots = true,
	                                     .has_packages = true,
	                                     .has_zygotes = true}};
	f->rules = (struct policy_rules){f->config, f->runners, &f->driver, 4};
	f->request.language = (char *)"demo";
	f->request.code = (char *)"x";
	f->request.code_len = 1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	policy_decision_done(&f->decision);
	runners_free(f->runners);
	config_free(f->config);
	free(f);
	return 0;
}

static int decide(struct fixture *f)
{
	policy_decision_done(&f->decision);
	error_clear(&f->err);
	return policy_decide(&f->rules, &f->stack, &f->request, &f->decision, &f->err);
}

static void expect_decided(struct fixture *f)
{
	if (decide(f) < 0)
		fail_msg("%s: %s", f->err.field, f->err.msg);
}

static void expect_refused(struct fixture *f, const char *field, const char *what)
{
	struct policy_decision untouched = {.timeout_us = 77};

	error_clear(&f->err);
	assert_int_equal(policy_decide(&f->rules, &f->stack, &f->request, &untouched, &f->err), -1);
	assert_int_equal(f->err.code, ERR_INVALID);
	assert_string_equal(f->err.field, field);
	if (!strstr(f->err.msg, what))
		fail_msg("%s", f->err.msg);
	assert_int_equal(untouched.timeout_us, 77);
	assert_null(untouched.argv);
}

static void plain_request_gets_the_defaults(void **state)
{
	struct fixture *f = *state;
	const struct box_limits *l = &f->decision.spec.limits;

	expect_decided(f);
	assert_int_equal(f->decision.timeout_us, 30000000);
	assert_int_equal(f->decision.output_bytes, MIB);
	assert_int_equal(f->decision.report_bytes, POLICY_REPORT_BYTES);
	assert_int_equal(l->memory_bytes, 512 * MIB);
	assert_int_equal(l->workspace_bytes, 256 * MIB);
	assert_int_equal(l->tmp_bytes, 128 * MIB);
	assert_int_equal(l->shm_bytes, 64 * MIB);
	assert_int_equal(l->workspace_inodes, 50000);
	assert_int_equal(l->tmp_inodes, 20000);
	assert_int_equal(l->pids, 128);
	assert_int_equal(l->cpu_millicores, 1000);
	assert_int_equal(l->nofile, 1024);
	assert_int_equal(f->decision.spec.required_layers, 3);
	assert_string_equal(f->decision.runner->name, "demo");
}

static void command_is_expanded_and_arguments_appended(void **state)
{
	struct fixture *f = *state;
	char *args[] = {(char *)"{source}", (char *)"-x", (char *)"", NULL};

	f->request.args = args;
	expect_decided(f);
	assert_int_equal(str_list_count(f->decision.argv), 6);
	assert_string_equal(f->decision.argv[0], "/bin/sh");
	assert_string_equal(f->decision.argv[1], "/opt/millibox/runners/demo/run");
	assert_string_equal(f->decision.argv[2], "/run/millibox/main.x");
	assert_string_equal(f->decision.argv[3],
	                    "{source}"); /* the caller's words are not expanded */
	assert_string_equal(f->decision.argv[4], "-x");
	assert_string_equal(f->decision.argv[5], "");
}

static bool has_variable(char *const *env, const char *variable)
{
	size_t same = 0;

	for (; *env; env++)
		same += str_equal(*env, variable);
	return same == 1;
}

static void environment_is_base_then_runner_then_caller(void **state)
{
	struct fixture *f = *state;
	char *env[] = {(char *)"HOME=/workspace/h", (char *)"MINE=a=b", (char *)"EMPTY=", NULL};

	f->request.env = env;
	expect_decided(f);
	assert_int_equal(str_list_count(f->decision.env), 8);
	assert_true(has_variable(f->decision.env, "PATH=/usr/local/bin:/usr/bin:/bin"));
	assert_true(has_variable(f->decision.env, "HOME=/workspace/h"));
	assert_true(has_variable(f->decision.env, "LANG=de"));
	assert_true(has_variable(f->decision.env, "TMPDIR=/tmp"));
	assert_true(has_variable(f->decision.env, "USER=sandbox"));
	assert_true(has_variable(f->decision.env, "DEMO=1"));
	assert_true(has_variable(f->decision.env, "MINE=a=b"));
	assert_true(has_variable(f->decision.env, "EMPTY="));
}

/* The same checks, but its session makes command and environment. */
static void run_of_a_session_has_no_command(void **state)
{
	struct fixture *f = *state;

	f->request.in_session = true;
	expect_decided(f);
	assert_int_equal(f->decision.spec.limits.memory_bytes, 512 * MIB);
	assert_int_equal(f->decision.spec.required_layers, 3);
	assert_null(f->decision.argv);
	assert_null(f->decision.env);
	assert_null(f->decision.prepare_argv);
	f->request.code_len = 0;
	expect_refused(f, "code", "is empty");
}

static void nothing_at_all_makes_the_base_environment(void **state)
{
	char **env = env_make(NULL, NULL, false, NULL);

	(void)state;
	assert_int_equal(str_list_count(env), 5);
	str_list_free(env);
}

static void search_paths_of_modules_are_joined(void **state)
{
	char *runner[] = {(char *)"PYTHONPATH=/layer:/both", (char *)"NODE_PATH=/node",
	                  (char *)"OTHER=1", NULL};
	char *caller[] = {(char *)"PYTHONPATH=/own:/both", (char *)"NODE_PATH=", (char *)"OTHER=2",
	                  NULL};
	char **env = env_make(runner, caller, 0, NULL);

	(void)state;
	assert_true(str_list_has(env, "PYTHONPATH=/own:/both:/layer"));
	assert_true(str_list_has(env, "NODE_PATH=/node"));
	assert_true(str_list_has(env, "OTHER=2"));
	assert_int_equal(str_list_count(env), 8);
	str_list_free(env);
}

static void languages_are_found_or_reported(void **state)
{
	struct fixture *f = *state;

	f->request.language = (char *)"d";
	expect_decided(f);
	f->request.language = (char *)"cobol";
	expect_refused(f, "language", "unknown language 'cobol'; known: absent, demo");
	f->request.language =
		(char *)"a\nb\xff\x01 and much more than anybody would want to read here";
	expect_refused(f, "language", "'a?b?? and much");
	f->request.language = NULL;
	expect_refused(f, "language", "required");
	f->request.language = (char *)"";
	expect_refused(f, "language", "required");
	f->request.language = (char *)"absent";
	assert_int_equal(decide(f), -1);
	assert_int_equal(f->err.code, ERR_NO_LANGUAGE);
	assert_string_equal(f->err.field, "language");
	assert_non_null(strstr(f->err.msg, "/nonexistent/absent"));
}

static void code_is_there_bounded_and_text(void **state)
{
	struct fixture *f = *state;
	char code[] = "a\0b";

	f->request.code_len = 0;
	expect_refused(f, "code", "empty");
	f->request.code = NULL;
	f->request.code_len = 3;
	expect_refused(f, "code", "empty");
	f->request.code = code;
	expect_refused(f, "code", "NUL");
	f->config->max_code_bytes = 2;
	assert_int_equal(decide(f), -1);
	assert_int_equal(f->err.code, ERR_TOO_LARGE);
	f->request.code = (char *)"ab";
	f->request.code_len = 2;
	expect_decided(f);
}

static void too_small_limits_are_refused(void **state)
{
	static const struct {
		size_t offset;
		uint64_t too_small, just_enough;
		const char *field, *least;
	} rows[] = {
#define AT(name) offsetof(struct run_request, name)
		{AT(timeout_us), 999, 1000, "timeout", "0.001"},
		{AT(memory_bytes), 16 * MIB - 1, 16 * MIB, "resources.memory", "16Mi"},
		{AT(disk_bytes), MIB - 1, MIB, "resources.disk", "1Mi"},
		{AT(cpu_millicores), 9, 10, "resources.cpu", "0.01"},
		{AT(max_processes), 15, 16, "resources.max_processes", "16"},
		{AT(max_output_bytes), 0, 1, "resources.max_output", ""},
#undef AT
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t *field = (uint64_t *)(void *)((char *)&f->request + rows[i].offset);

		*field = rows[i].too_small;
		if (rows[i].too_small)
			expect_refused(f, rows[i].field, rows[i].least);
		*field = rows[i].just_enough;
		expect_decided(f);
		*field = 0;
	}
}

static void limits_above_the_maximum_are_clamped(void **state)
{
	struct fixture *f = *state;
	const struct box_limits *l = &f->decision.spec.limits;

	f->request.timeout_us = UINT64_MAX;
	f->request.memory_bytes = UINT64_MAX;
	f->request.disk_bytes = UINT64_MAX;
	f->request.cpu_millicores = UINT64_MAX;
	f->request.max_processes = UINT64_MAX;
	f->request.max_output_bytes = UINT64_MAX;
	expect_decided(f);
	assert_int_equal(f->decision.timeout_us, 3600000000);
	assert_int_equal(f->decision.output_bytes, 4 * MIB);
	assert_int_equal(l->memory_bytes, 8192 * MIB);
	assert_int_equal(l->workspace_bytes, 4096 * MIB);
	assert_int_equal(l->cpu_millicores, 4000);
	assert_int_equal(l->pids, 1024);
	f->config->cpu_max_millicores = 1500;
	expect_decided(f);
	assert_int_equal(l->cpu_millicores, 1500);
	f->config->cpu_max_millicores = 64000; /* more than there are */
	expect_decided(f);
	assert_int_equal(l->cpu_millicores, 4000);
}

static void open_files_of_a_whole_box_are_bounded(void **state)
{
	static const struct {
		uint64_t processes;
		uint32_t nofile;
	} rows[] = {
		{16, 1024}, {128, 1024}, {129, 1016}, {1024, 128}, {2048, 64}, {32768, 64},
	};
	struct fixture *f = *state;

	f->config->processes_max = 32768;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		f->request.max_processes = rows[i].processes;
		expect_decided(f);
		assert_int_equal(f->decision.spec.limits.nofile, rows[i].nofile);
	}
}

static void areas_stay_below_the_memory(void **state)
{
	static const uint64_t sizes[] = {16 * MIB,  16 * MIB + 12345, 64 * MIB,  100 * MIB + 1,
	                                 512 * MIB, 1024 * MIB,       8192 * MIB};
	struct fixture *f = *state;
	const struct box_limits *l = &f->decision.spec.limits;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		f->request.memory_bytes = sizes[i];
		expect_decided(f);
		assert_true(l->memory_bytes <= sizes[i] && l->memory_bytes > sizes[i] - 4096);
		assert_true(l->workspace_bytes <= l->memory_bytes / 2);
		assert_true(l->tmp_bytes <= l->memory_bytes / 4 && l->tmp_bytes <= 512 * MIB);
		assert_true(l->shm_bytes <= l->memory_bytes / 8 && l->shm_bytes <= 64 * MIB);
		assert_true(l->workspace_bytes + l->tmp_bytes + l->shm_bytes < l->memory_bytes);
		assert_int_equal(
			(l->workspace_bytes | l->tmp_bytes | l->shm_bytes | l->memory_bytes) % 4096,
			0);
		assert_int_equal(
			box_spec_check(&(struct box_spec){.id = "a", .limits = *l}, &f->err), 0);
	}
	f->request.memory_bytes = 16 * MIB;
	f->request.disk_bytes = MIB;
	expect_decided(f);
	assert_int_equal(l->workspace_inodes, 256);
}

static void expect_cut(const struct fixture *f, size_t index, const char *field, const char *asked,
                       const char *granted, const char *why)
{
	const struct policy_cut *cut;

	assert_non_null(f->decision.cuts);
	assert_true(index < f->decision.cuts->count);
	cut = &f->decision.cuts->list[index];
	assert_string_equal(cut->field, field);
	assert_string_equal(cut->asked, asked);
	assert_string_equal(cut->granted, granted);
	assert_string_equal(cut->why, why);
}

/* A compiler works in /tmp; the workspace has the request's files, and what it makes. */
static void areas_of_a_compiler_fit_its_work(void **state)
{
	struct fixture *f = *state;
	const struct box_limits *l = &f->decision.compile_limits;
	static const struct {
		uint64_t memory, tmp, workspace; /* of the request; of the compiler's box */
	} rows[] = {
		{512 * MIB, 640 * MIB, 256 * MIB},
		{32 * MIB, 640 * MIB, 64 * MIB},
		{4096 * MIB, 1472 * MIB, 2048 * MIB},
	};

	runners_free(f->runners);
	f->runners = fixture_runners_with("compile_command: [/bin/sh, '{artifact}']\n"
	                                  "compile_limits: {memory: 2Gi, disk: 640Mi}\n");
	f->rules.runners = f->runners;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		f->request.memory_bytes = rows[i].memory;
		expect_decided(f);
		assert_true(l->memory_bytes >= 2048 * MIB);
		assert_int_equal(l->tmp_bytes, rows[i].tmp);
		assert_int_equal(l->workspace_bytes, rows[i].workspace);
		assert_true(l->workspace_bytes + l->tmp_bytes + l->shm_bytes < l->memory_bytes);
	}
	/* As much as its memory allows. */
	f->config->memory_max_bytes = 512 * MIB;
	f->request.memory_bytes = 512 * MIB;
	expect_decided(f);
	assert_int_equal(l->memory_bytes, 512 * MIB);
	assert_int_equal(l->tmp_bytes, 128 * MIB);
	assert_int_equal(l->workspace_bytes, 256 * MIB);
}

static void disk_above_half_the_memory_is_cut_and_told(void **state)
{
	struct fixture *f = *state;

	f->request.memory_bytes = 64 * MIB;
	f->request.disk_bytes = 32 * MIB;
	expect_decided(f);
	assert_null(f->decision.cuts);
	f->request.disk_bytes = 64 * MIB;
	expect_decided(f);
	assert_int_equal(f->decision.spec.limits.workspace_bytes, 32 * MIB);
	expect_cut(f, 0, "resources.disk", "64Mi", "32Mi",
	           "files are kept in memory, at most half of resources.memory");
}

static void disk_follows_the_memory_of_the_request(void **state)
{
	struct fixture *f = *state;

	expect_decided(f);
	const uint64_t fallback = f->decision.spec.limits.workspace_bytes;

	f->request.memory_bytes = 8 * fallback;
	expect_decided(f);
	assert_int_equal(f->decision.spec.limits.workspace_bytes, 4 * fallback);
	assert_null(f->decision.cuts);
	f->request.disk_bytes = fallback;
	expect_decided(f);
	assert_int_equal(f->decision.spec.limits.workspace_bytes, fallback);
}

static void a_background_run_has_a_limit_of_its_own(void **state)
{
	struct fixture *f = *state;

	f->request.background = true;
	f->request.left_us = 7200 * USEC_PER_SEC;
	expect_decided(f);
	assert_int_equal(f->decision.timeout_us, 7200 * USEC_PER_SEC); /* not limits.timeout */
	f->request.timeout_us = 5000 * USEC_PER_SEC;
	expect_decided(f);
	assert_int_equal(f->decision.timeout_us, 5000 * USEC_PER_SEC);
	assert_null(f->decision.cuts);
	f->request.timeout_us = 9000 * USEC_PER_SEC;
	expect_decided(f);
	expect_cut(f, 0, "timeout", "9000", "7200",
	           "not more than the rest of the session's lifetime");
}

static void every_cut_limit_is_told(void **state)
{
	struct fixture *f = *state;

	f->request.memory_bytes = 64ULL << 30;
	f->request.timeout_us = 999999 * USEC_PER_SEC;
	f->request.max_processes = 1000000;
	expect_decided(f);
	assert_int_equal(f->decision.cuts->count, 3);
	expect_cut(f, 0, "timeout", "999999", "3600",
	           "the operator's maximum (limits.timeout_max)");
	expect_cut(f, 1, "resources.memory", "64Gi", "8Gi",
	           "the operator's maximum (limits.memory_max)");
	expect_cut(f, 2, "resources.max_processes", "1000000", "1024",
	           "the operator's maximum (limits.processes_max)");
	/* A default is not the caller's, and whole pages are no cut. */
	f->request = (struct run_request){.language = f->request.language,
	                                  .code = f->request.code,
	                                  .code_len = f->request.code_len,
	                                  .memory_bytes = 64 * MIB + 1,
	                                  .timeout_us = 999999 * USEC_PER_SEC,
	                                  .timeout_soft = true};
	expect_decided(f);
	assert_null(f->decision.cuts);
}

static void file_names_follow_the_rule(void **state)
{
	static char long_part[257], deep[80], deeper[80], long_name[4098];
	const struct {
		const char *name;
		int result;
	} rows[] = {
		{"a", 0},
		{"a/b.txt", 0},
		{"...", 0},
		{".hidden/..x", 0},
		{"-rf", 0},
		{"new\nline", 0},
		{"\xff\xfe", 0},
		{"", -EINVAL},
		{"/", -EINVAL},
		{"/etc/passwd", -EINVAL},
		{"a/", -EINVAL},
		{"a//b", -EINVAL},
		{".", -EINVAL},
		{"..", -EINVAL},
		{"a/../b", -EINVAL},
		{"a/./b", -EINVAL},
		{"../a", -EINVAL},
		{"a/..", -EINVAL},
		{long_part, -EINVAL},
		{long_part + 1, 0},
		{deep, 0},
		{deeper, -EINVAL},
		{long_name, -EINVAL},
	};

	(void)state;
	memset(long_part, 'x', 256);
	for (int i = 0; i < 33; i++)
		memcpy(deeper + 2 * i, "d/", 2);
	deeper[65] = '\0';
	memcpy(deep, deeper, 63);
	/* 4097 bytes of 17 valid parts. */
	for (size_t i = 0; i < sizeof(long_name) - 1; i++)
		long_name[i] = i % 250 == 249 ? '/' : 'n';
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (policy_check_name(rows[i].name) != rows[i].result)
			fail_msg("row %zu", i);
}

static void names_that_collide_are_found_among_many(void **state)
{
	static const struct {
		const char *names[4];
		bool collide;
	} rows[] = {
		{{"a", "b", "a", "c"}, true},
		{{"a/b", "a-b", "a.c", "a"}, true}, /* '-' and '.' sort before '/' */
		{{"a/b/c", "x", "a/b.d", "a/b"}, true},
		{{"a\x01", "a", "a/z", "aa"}, true},
		{{"a/b", "a-b", "a.c", "ab"}, false},
		{{"a/b", "a/bc", "a/b.c", "a/c"}, false},
	};
	struct fixture *f = *state;
	struct run_request_file files[4] = {0};

	f->request.files = files;
	f->request.files_count = 4;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t j = 0; j < 4; j++)
			files[j].name = (char *)rows[i].names[j];
		if (rows[i].collide)
			expect_refused(f, "files", "collides");
		else
			expect_decided(f);
	}
}

static void bad_files_are_refused(void **state)
{
	struct fixture *f = *state;
	static struct run_request_file many[POLICY_FILES_MAX + 1];
	struct run_request_file files[2] = {{.name = (char *)"../x"}, {.name = (char *)"b"}};
	static const struct {
		const char *a, *b;
		bool collides;
	} pairs[] = {
		{"a", "a", true},   {"a", "a/b", true},    {"a/b/c", "a/b", true},
		{"a", "ab", false}, {"a/b", "a/c", false}, {"a/b", "ab", false},
	};

	f->request.files = files;
	f->request.files_count = 2;
	expect_refused(f, "files", "'../x' is not a valid file name");
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		files[0].name = (char *)pairs[i].a;
		files[1].name = (char *)pairs[i].b;
		if (pairs[i].collides)
			expect_refused(f, "files", "collides");
		else
			expect_decided(f);
	}
	files[0].len = 256 * MIB;
	expect_decided(f);
	files[1].len = 1;
	expect_refused(f, "files", "but resources.disk is");
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i].name = xasprintf("f%zu", i);
	f->request.files = many;
	f->request.files_count = POLICY_FILES_MAX;
	expect_decided(f);
	f->request.files_count++;
	expect_refused(f, "files", "257 files");
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		free(many[i].name);
}

static void arguments_are_bounded(void **state)
{
	struct fixture *f = *state;
	static char *args[POLICY_ARGS_MAX + 2];
	static char large[POLICY_ARGS_BYTES + 1];

	for (size_t i = 0; i < POLICY_ARGS_MAX; i++)
		args[i] = (char *)"a";
	f->request.args = args;
	expect_decided(f);
	args[POLICY_ARGS_MAX] = (char *)"a";
	expect_refused(f, "args", "256 arguments");
	memset(large, 'x', POLICY_ARGS_BYTES - 1);
	memset(args, 0, sizeof(args));
	args[0] = large;
	expect_decided(f);
	large[POLICY_ARGS_BYTES - 1] = 'x';
	expect_refused(f, "args", "32768 bytes");
}

static void variables_are_named_properly_and_load_nothing(void **state)
{
	static const struct {
		const char *variable;
		int result;
	} rows[] = {
		{"A=", 0},
		{"_x9=v", 0},
		{"path=1", 0},
		{"LDX=1", 0},
		{"ENVIRONMENT=prod", 0},
		{"NODE_ENV=test", 0},
		{"ld_preload=x", 0}, /* no loader reads that */
		/* search paths and switches of ordinary programs */
		{"LD_LIBRARY_PATH=/workspace/lib", 0},
		{"PYTHONPATH=/workspace/lib", 0},
		{"PYTHONUNBUFFERED=1", 0},
		{"PYTHONDONTWRITEBYTECODE=1", 0},
		{"MALLOC_ARENA_MAX=2", 0},
		{"NODE_PATH=/workspace/lib", 0},
		{"CLASSPATH=/workspace/lib", 0},
		{"PYTHONPATHX=x", -EPERM},
		{"A", -EINVAL},
		{"=v", -EINVAL},
		{"", -EINVAL},
		{"9A=v", -EINVAL},
		{"A-B=v", -EINVAL},
		{"A B=v", -EINVAL},
		{"A\n=v", -EINVAL},
		{"\xc3\xa4=v", -EINVAL},
		{"LD_PRELOAD=x", -EPERM},
		{"LD_=x", -EPERM},
		{"PYTHONSTARTUP=x", -EPERM},
		{"PYTHON=x", -EPERM},
		{"BASH_ENV=x", -EPERM},
		{"BASH_FUNC_ls=x", -EPERM},
		{"ENV=x", -EPERM},
		{"NODE_OPTIONS=x", -EPERM},
		{"PERL5OPT=x", -EPERM},
		{"RUBYOPT=x", -EPERM},
		{"GCONV_PATH=x", -EPERM},
		{"GLIBC_TUNABLES=x", -EPERM},
		{"JAVA_TOOL_OPTIONS=x", -EPERM},
		{"SHELLOPTS=x", -EPERM},
		{"MILLIBOX_X=x", -EPERM},
		{"LD_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=x",
	         -EPERM},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (env_check_variable(rows[i].variable) != rows[i].result)
			fail_msg("row %zu: %s", i, rows[i].variable);
}

static void bad_environment_is_refused(void **state)
{
	struct fixture *f = *state;
	static char large[LIMIT_ENV_BYTES + 1] = "A=";
	static char *many[LIMIT_ENV_MAX + 2];
	char *env[] = {(char *)"A=1", (char *)"LD_PRELOAD=/x.so", NULL};

	f->request.env = env;
	expect_refused(f, "env_vars", "'LD_PRELOAD' changes how programs are loaded");
	env[1] = (char *)"A=2";
	expect_refused(f, "env_vars", "'A' is given twice");
	env[1] = (char *)"no name";
	expect_refused(f, "env_vars", "variable 2");
	env[0] = large;
	env[1] = NULL;
	memset(large + 2, 'x', LIMIT_ENV_BYTES - 3);
	expect_decided(f);
	large[LIMIT_ENV_BYTES - 1] = 'x';
	expect_refused(f, "env_vars", "32768 bytes");
	for (size_t i = 0; i <= LIMIT_ENV_MAX; i++)
		many[i] = xasprintf("V%zu=", i);
	f->request.env = many;
	expect_refused(f, "env_vars", "256 variables");
	free(many[LIMIT_ENV_MAX]);
	many[LIMIT_ENV_MAX] = NULL;
	expect_decided(f);
	for (size_t i = 0; i < LIMIT_ENV_MAX; i++)
		free(many[i]);
}

static void missing_layer_is_refused_when_strict(void **state)
{
	struct fixture *f = *state;

	f->driver.caps.required_layers = LAYER_BIT(LAYER_USER) | LAYER_BIT(LAYER_SECCOMP);
	f->driver.caps.layers = LAYER_BIT(LAYER_USER);
	assert_int_equal(decide(f), -1);
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(f->err.msg, layer_name(LAYER_SECCOMP)));
	f->config->isolation = CONFIG_ISOLATION_BEST_EFFORT;
	expect_decided(f);
	assert_int_equal(f->decision.spec.required_layers, 0);
}

static void box_of_a_session_needs_no_code(void **state)
{
	struct fixture *f = *state;
	char *env[] = {(char *)"A=1", NULL};
	char *bad[] = {(char *)"LD_PRELOAD=x", NULL};
	struct session_request request = {.language = (char *)"demo"};

	request.memory_bytes = 64 * MIB;
	request.env = env;
	assert_int_equal(
		policy_decide_session(&f->rules, &f->stack, &request, &f->decision, &f->err), 0);
	assert_null(f->decision.argv);
	assert_string_equal(f->decision.runner->name, "demo");
	assert_int_equal(f->decision.spec.limits.memory_bytes, 64 * MIB);
	assert_int_equal(f->decision.spec.limits.workspace_bytes, 32 * MIB);
	assert_int_equal(f->decision.spec.required_layers, f->driver.caps.required_layers);
	assert_string_equal(f->decision.env[str_list_count(f->decision.env) - 1], "A=1");
	policy_decision_done(&f->decision);
	request.env = bad;
	assert_int_equal(
		policy_decide_session(&f->rules, &f->stack, &request, &f->decision, &f->err), -1);
	assert_string_equal(f->err.field, "env_vars");
	error_clear(&f->err);
	request.env = NULL;
	request.memory_bytes = 1;
	assert_int_equal(
		policy_decide_session(&f->rules, &f->stack, &request, &f->decision, &f->err), -1);
	assert_string_equal(f->err.field, "resources.memory");
	error_clear(&f->err);
	request.memory_bytes = 0;
	f->driver.caps.layers = 0;
	assert_int_equal(
		policy_decide_session(&f->rules, &f->stack, &request, &f->decision, &f->err), -1);
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
}

static void any_command_of_a_runner_is_expanded(void **state)
{
	struct fixture *f = *state;
	char *command[] = {(char *)"{runner}/stay", (char *)"{source}", NULL};
	char *args[] = {(char *)"{source}", NULL};
	cleanup_str_list char **argv =
		policy_argv(&(struct policy_command){.runner = runners_find(f->runners, "demo"),
	                                             .command = command,
	                                             .source = "run7.x",
	                                             .args = args});

	assert_string_equal(argv[0], "/opt/millibox/runners/demo/stay");
	assert_string_equal(argv[1], "/run/millibox/run7.x");
	assert_string_equal(argv[2], "{source}"); /* a caller's word is not expanded */
	assert_null(argv[3]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(plain_request_gets_the_defaults),
		TEST(command_is_expanded_and_arguments_appended),
		TEST(environment_is_base_then_runner_then_caller),
		TEST(run_of_a_session_has_no_command),
		TEST(nothing_at_all_makes_the_base_environment),
		TEST(search_paths_of_modules_are_joined),
		TEST(languages_are_found_or_reported),
		TEST(code_is_there_bounded_and_text),
		TEST(too_small_limits_are_refused),
		TEST(limits_above_the_maximum_are_clamped),
		TEST(open_files_of_a_whole_box_are_bounded),
		TEST(areas_stay_below_the_memory),
		TEST(areas_of_a_compiler_fit_its_work),
		TEST(disk_above_half_the_memory_is_cut_and_told),
		TEST(disk_follows_the_memory_of_the_request),
		TEST(a_background_run_has_a_limit_of_its_own),
		TEST(every_cut_limit_is_told),
		TEST(file_names_follow_the_rule),
		TEST(names_that_collide_are_found_among_many),
		TEST(bad_files_are_refused),
		TEST(arguments_are_bounded),
		TEST(variables_are_named_properly_and_load_nothing),
		TEST(bad_environment_is_refused),
		TEST(missing_layer_is_refused_when_strict),
		TEST(box_of_a_session_needs_no_code),
		TEST(any_command_of_a_runner_is_expanded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
