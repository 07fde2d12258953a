/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/docker_reply.h"
#include "unit.h"

#include "wire/layer.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static json_t *parse(const char *text)
{
	json_t *value = docker_parse(text, strlen(text));

	assert_non_null(value);
	return value;
}

static int read_version(const char *text, struct docker_facts *facts, struct error *err)
{
	json_t *answer = parse(text);
	int r;

	*facts = (struct docker_facts){.cpus = 0};
	error_clear(err);
	r = docker_read_version(answer, facts, err);
	json_decref(answer);
	assert_int_equal(error_is_set(err), r < 0);
	return r;
}

static void the_version_of_the_api_is_one_that_both_know(void **state)
{
	static const struct {
		const char *text, *api; /* NULL: refused */
	} cases[] = {
		{"{\"ApiVersion\": \"1.41\", \"MinAPIVersion\": \"1.12\"}", "1.41"},
		{"{\"ApiVersion\": \"1.40\", \"MinAPIVersion\": \"1.12\"}", "1.40"},
		{"{\"ApiVersion\": \"1.47\", \"MinAPIVersion\": \"1.24\"}", "1.41"},
		{"{\"ApiVersion\": \"1.52\", \"MinAPIVersion\": \"1.44\"}", "1.44"},
		{"{\"ApiVersion\": \"1.41\"}", "1.41"},
		{"{\"ApiVersion\": \"1.39\"}", NULL},
		{"{\"ApiVersion\": \"2\"}", NULL},
		{"{\"ApiVersion\": \"../1.41\"}", NULL},
		{"{\"ApiVersion\": \"1.41/../..\"}", NULL},
		{"{\"ApiVersion\": 1.41}", NULL},
		{"{}", NULL},
		{"[]", NULL},
		{"\"1.41\"", NULL},
	};
	struct docker_facts facts;
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = read_version(cases[i].text, &facts, &err);

		assert_int_equal(r, cases[i].api ? 0 : -1);
		if (cases[i].api)
			assert_string_equal(facts.api, cases[i].api);
		else
			assert_int_equal(err.code, ERR_UNAVAILABLE);
	}
}

static void what_a_server_calls_itself_is_printable_and_short(void **state)
{
	struct docker_facts facts;
	struct error err = {0};
	char text[400];

	(void)state;
	(void)snprintf(text, sizeof(text),
	               "{\"ApiVersion\": \"1.41\", \"Version\": \"20\\n\\u001b[1m%0200d\"}", 0);
	assert_int_equal(read_version(text, &facts, &err), 0);
	assert_int_equal(strlen(facts.release), sizeof(facts.release) - 1);
	assert_memory_equal(facts.release, "20??[1m000", 10);
}

static int read_info(const char *text, const char *runtime, struct docker_facts *facts,
                     struct error *err)
{
	json_t *answer = parse(text);
	int r;

	*facts = (struct docker_facts){.api = "1.41"};
	error_clear(err);
	r = docker_read_info(answer, runtime, facts, err);
	json_decref(answer);
	return r;
}

#define ALL_GROUPS "\"NCPU\": 4, \"MemoryLimit\": true, \"PidsLimit\": true, \"CpuCfsQuota\": true"
#define GROUPS                                                                                     \
	(LAYER_BIT(LAYER_CGROUP_MEMORY) | LAYER_BIT(LAYER_CGROUP_PIDS) |                           \
	 LAYER_BIT(LAYER_CGROUP_CPU))

static void layers_are_only_what_the_server_has(void **state)
{
	struct docker_facts facts;
	struct error err = {0};

	(void)state;
	assert_int_equal(read_info("{" ALL_GROUPS "}", NULL, &facts, &err), 0);
	assert_int_equal(facts.layers & GROUPS, GROUPS);
	assert_int_equal(facts.layers & LAYER_BIT(LAYER_USER), 0);
	assert_true(facts.layers & LAYER_BIT(LAYER_CGROUP_NS));
	assert_false(facts.maps_ids);
	assert_int_equal(facts.cpus, 4);
	assert_int_equal(read_info("{\"NCPU\": 1, \"MemoryLimit\": \"true\", \"PidsLimit\": 1}",
	                           NULL, &facts, &err),
	                 0);
	assert_int_equal(facts.layers & GROUPS, 0);
	assert_int_equal(read_info("{\"NCPU\": 1, \"SecurityOptions\": [1, \"name=seccomp\", "
	                           "\"name=userns\"]}",
	                           NULL, &facts, &err),
	                 0);
	assert_true(facts.maps_ids && (facts.layers & LAYER_BIT(LAYER_USER)));
}

static void a_server_without_facts_is_none(void **state)
{
	static const char *const bad[] = {"{}",
	                                  "[]",
	                                  "{\"NCPU\": 0}",
	                                  "{\"NCPU\": \"4\"}",
	                                  "{\"NCPU\": 1e9}",
	                                  "{\"NCPU\": -1}",
	                                  "{\"NCPU\": 99999999999}"};
	struct docker_facts facts;
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(read_info(bad[i], NULL, &facts, &err), -1);
}

static void the_grade_is_that_of_the_program(void **state)
{
	static const char info[] =
		"{" ALL_GROUPS ", \"DefaultRuntime\": \"runc\", \"Runtimes\": {"
		"\"runc\": {\"path\": \"runc\"}, \"runsc\": {\"path\": \"/opt/runc\"}, "
		"\"safe\": {\"path\": \"/usr/bin/runsc\"}, \"plain-runsc\": {}, "
		"\"kata\": {\"path\": \"/opt/kata-runtime\"}}}";
	static const struct {
		const char *runtime;
		enum engine_grade grade;
	} cases[] = {
		{NULL, ENGINE_GRADE_NAMESPACE},    {"runc", ENGINE_GRADE_NAMESPACE},
		{"runsc", ENGINE_GRADE_NAMESPACE}, /* a name promises nothing */
		{"safe", ENGINE_GRADE_GVISOR},     {"plain-runsc", ENGINE_GRADE_GVISOR},
		{"kata", ENGINE_GRADE_VM},
	};
	struct docker_facts facts;
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(read_info(info, cases[i].runtime, &facts, &err), 0);
		assert_int_equal(facts.grade, cases[i].grade);
	}
	assert_int_equal(read_info(info, "other", &facts, &err), -1);
	assert_non_null(strstr(err.msg, "no runtime 'other'"));
}

static void the_end_of_a_container_is_a_wait_status(void **state)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{"{\"StatusCode\": 0}", W_EXITCODE(0, 0)},
		{"{\"StatusCode\": 1}", W_EXITCODE(1, 0)},
		{"{\"StatusCode\": 137}", SIGKILL},
		{"{\"StatusCode\": 139}", SIGSEGV},
		{"{\"StatusCode\": 128}", W_EXITCODE(128, 0)},
		{"{\"StatusCode\": 255}", W_EXITCODE(255, 0)},
		{"{\"StatusCode\": -1}", W_EXITCODE(255, 0)},
		{"{}", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *answer = parse(cases[i].text);

		assert_int_equal(docker_read_exit(answer), cases[i].status);
		json_decref(answer);
	}
}

static void messages_and_names_may_be_anything(void **state)
{
	json_t *answer =
		parse("[{\"Names\": [\"/one\"]}, {\"Names\": []}, {}, 1, {\"Names\": [2]}]");
	char text[16];

	(void)state;
	assert_string_equal(docker_read_name(answer, 0), "one");
	for (size_t i = 1; i < 6; i++)
		assert_null(docker_read_name(answer, i));
	docker_read_message(answer, text, sizeof(text));
	assert_string_equal(text, "");
	json_decref(answer);
	answer = parse("{\"message\": \"a\\nlong message for a short buffer\"}");
	docker_read_message(answer, text, sizeof(text));
	assert_string_equal(text, "a?long message ");
	json_decref(answer);
	docker_read_message(NULL, text, sizeof(text));
	assert_string_equal(text, "");
}

static void an_image_with_volumes_is_known(void **state)
{
	static const struct {
		const char *text;
		bool has;
	} cases[] = {{"{\"Config\": {\"Volumes\": {\"/data\": {}}}}", true},
	             {"{\"Config\": {\"Volumes\": {}}}", false},
	             {"{\"Config\": {\"Volumes\": null}}", false},
	             {"{}", false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *image = parse(cases[i].text);

		assert_int_equal(docker_has_volumes(image), cases[i].has);
		json_decref(image);
	}
}

static void json_is_bounded_in_depth(void **state)
{
	char deep[201];

	(void)state;
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	assert_null(docker_parse(deep, 200));
	assert_null(docker_parse_last(deep, 200));
	json_decref(parse("[[[[{}]]]]"));
	assert_null(docker_parse("{} {}", 5));
	assert_null(docker_parse("<html>", 6));
	assert_null(docker_parse("", 0));
}

static void the_last_value_of_a_stream_counts(void **state)
{
	static const char text[] = "{\"status\": \"a\"}\r\n{\"message\": \"last\"}\r\n";
	json_t *last = docker_parse_last(text, sizeof(text) - 1);
	char message[8];

	(void)state;
	docker_read_message(last, message, sizeof(message));
	assert_string_equal(message, "last");
	json_decref(last);
	assert_null(docker_parse_last("garbage", 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_of_the_api_is_one_that_both_know),
		cmocka_unit_test(what_a_server_calls_itself_is_printable_and_short),
		cmocka_unit_test(layers_are_only_what_the_server_has),
		cmocka_unit_test(a_server_without_facts_is_none),
		cmocka_unit_test(the_grade_is_that_of_the_program),
		cmocka_unit_test(the_end_of_a_container_is_a_wait_status),
		cmocka_unit_test(messages_and_names_may_be_anything),
		cmocka_unit_test(an_image_with_volumes_is_known),
		cmocka_unit_test(json_is_bounded_in_depth),
		cmocka_unit_test(the_last_value_of_a_stream_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
