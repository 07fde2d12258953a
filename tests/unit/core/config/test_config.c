/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/str.h"
#include "core/config/config.h"

static struct config *parse(const char *text, struct error *err)
{
	return config_parse(text, text ? strlen(text) : 0, "c.yaml", NULL, 0, err);
}

static struct config *parse_good(const char *text)
{
	struct error err = {0};
	struct config *c = parse(text, &err);

	if (!c)
		fail_msg("%s", err.msg);
	return c;
}

static char *dump(const struct config *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	config_dump(c, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void a_local_peer_may_have_a_part_of_the_connections(void **state)
{
	static const struct {
		const char *yaml;
		uint64_t expected;
	} list[] = {
		{"http: {max_connections: 4000}\n", 1000},
		{"http: {max_connections: 64, max_connections_per_peer: 32}\n", 32},
		{"http: {max_connections_per_local_peer: 7}\n", 7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		attr_cleanup(config_freep) struct config *c = parse_good(list[i].yaml);

		assert_int_equal(config_local_connections(c), list[i].expected);
	}
}

static void defaults_are_the_documented_ones(void **state)
{
	attr_cleanup(config_freep) struct config *c = parse_good(NULL);

	(void)state;
	assert_string_equal(c->listen, "127.0.0.1:8000");
	assert_int_equal(c->isolation, CONFIG_ISOLATION_STRICT);
	assert_int_equal(c->log_level, LOG_LEVEL_INFO);
	assert_int_equal(c->log_format, LOG_FORMAT_TEXT);
	assert_int_equal(c->uid_base, 1879048192);
	assert_int_equal(c->max_connections, 2048);
	assert_int_equal(c->max_connections_per_peer, 128);
	assert_int_equal(config_local_connections(c), 512);
	assert_int_equal(c->max_body_bytes, 8 * MIB);
	assert_int_equal(c->max_header_bytes, 16 * 1024);
	assert_int_equal(c->max_code_bytes, MIB);
	assert_int_equal(c->request_timeout_us, 30000000);
	assert_int_equal(c->idle_timeout_us, 60000000);
	assert_int_equal(c->max_running, 0);
	assert_int_equal(c->max_starting, 0);
	assert_int_equal(c->memory_reserve_bytes, 0);
	assert_int_equal(c->max_queued, 1024);
	assert_int_equal(c->drain_timeout_us, 10000000);
	assert_int_equal(c->timeout_us, 30000000);
	assert_int_equal(c->timeout_max_us, 3600000000);
	assert_int_equal(c->memory_bytes, 512 * MIB);
	assert_int_equal(c->memory_max_bytes, 8192 * MIB);
	assert_int_equal(c->disk_bytes, 256 * MIB);
	assert_int_equal(c->disk_max_bytes, 4096 * MIB);
	assert_int_equal(c->cpu_millicores, 1000);
	assert_int_equal(c->cpu_max_millicores, 0);
	assert_int_equal(c->processes, 128);
	assert_int_equal(c->processes_max, 1024);
	assert_int_equal(c->output_bytes, MIB);
	assert_int_equal(c->output_max_bytes, 4 * MIB);
	assert_int_equal(c->max_answers_bytes, 256 * MIB);
	assert_int_equal(str_list_count(c->allowed_hosts), 0);
	assert_true(c->engine_path[0] == '/' && c->agent_path[0] == '/');
	assert_true(c->runners_dir[0] == '/' && c->state_dir[0] == '/' && c->socket[0] == '/');
}

static void what_is_given_is_known(void **state)
{
	static const char text[] = "egress:\n  pypi: [pypi.org, files.pythonhosted.org]\n";
	attr_cleanup(config_freep) struct config *none = parse_good(NULL);
	attr_cleanup(config_freep) struct config *some = parse_good(text);

	(void)state;
	assert_false(config_is_given(none, offsetof(struct config, egress_pypi)));
	assert_true(config_is_given(some, offsetof(struct config, egress_pypi)));
	assert_false(config_is_given(some, offsetof(struct config, egress_npm)));
}

static void file_sets_nested_keys(void **state)
{
	attr_cleanup(config_freep) struct config *c = parse_good(
		"listen: \"\"\nsocket: /x/y.sock\nlimits:\n  timeout: 5s\n  memory: 64Mi\n"
		"http: {max_body: 2Mi}\nadmission:\nallowed_hosts: [a.example, b.example]\n"
		"allowed_origins: []\n");

	(void)state;
	assert_string_equal(c->listen, "");
	assert_string_equal(c->socket, "/x/y.sock");
	assert_int_equal(c->timeout_us, 5000000);
	assert_int_equal(c->memory_bytes, 64 * MIB);
	assert_int_equal(c->max_body_bytes, 2 * MIB);
	assert_int_equal(c->max_queued, 1024);
	assert_string_equal(c->allowed_hosts[1], "b.example");
	assert_null(c->allowed_hosts[2]);
	assert_null(c->allowed_origins[0]);
}

static void errors_name_file_line_and_key(void **state)
{
	static const struct {
		const char *text, *words[3];
	} rows[] = {
		{"listen: 127.0.0.1:1\nlimits:\n  timeouu: 3s\n",
	         {"c.yaml:3: ", "unknown key 'limits.timeouu'", "did you mean 'limits.timeout'?"}},
		{"\n\nlimit: {timeout: 3s}\n", {"c.yaml:3: ", "unknown key 'limit'", ""}},
		{"frobnicate_everything: 1\n", {"c.yaml:1: ", "unknown key", ""}},
		{"limits:\n  timeout: soon\n",
	         {"c.yaml:2: ", "'limits.timeout'", "must be a time"}},
		{"limits:\n  memory: 1Mi\n", {"c.yaml:2: ", "'limits.memory'", "between 16Mi"}},
		{"limits: [1]\n", {"c.yaml:1: ", "'limits' must be a mapping", "not a list"}},
		{"limits: 5\n", {"c.yaml:1: ", "'limits' must be a mapping", "not a value"}},
		{"limits: \"\"\n", {"c.yaml:1: ", "'limits' must be a mapping", "not a value"}},
		{"isolation: [strict]\n",
	         {"c.yaml:1: ", "'isolation' must be a value", "not a list"}},
		{"isolation: {a: b}\n",
	         {"c.yaml:1: ", "'isolation' must be a value", "not a mapping"}},
		{"allowed_hosts: x\n", {"c.yaml:1: ", "'allowed_hosts' must be a list", ""}},
		{"allowed_hosts: [[x]]\n", {"c.yaml:1: ", "'allowed_hosts'", "plain names"}},
		{"allowed_hosts: ['a,b']\n", {"c.yaml:1: ", "'allowed_hosts'", "plain names"}},
		{"allowed_hosts: ['']\n", {"c.yaml:1: ", "'allowed_hosts'", "plain names"}},
		{"a: 1\nisolation:\n", {"c.yaml:1: ", "unknown key 'a'", ""}},
		{"isolation:\n", {"c.yaml:1: ", "'isolation' has no value", ""}},
		{"isolation: strict\nisolation: strict\n",
	         {"c.yaml:2: ", "'isolation' is given twice", ""}},
		{"limits: {timeout: 2s, timeout_max: 1s}\n",
	         {"'limits.timeout' is above 'limits.timeout_max'", "", ""}},
		{"http: {max_body: 1Ki}\n", {"'http.max_code' is above 'http.max_body'", "", ""}},
		{"http: {max_answers: 2Mi}\n",
	         {"'limits.output_max' is above 'http.max_answers'", "", ""}},
		{"limits: {cpu: 3, cpu_max: 2}\n", {"'limits.cpu' is above", "", ""}},
		{"listen: ''\nsocket: ''\n", {"both 'listen' and 'socket'", "", ""}},
		{"a: [\n", {"c.yaml:2: ", "not YAML", ""}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = {0};

		assert_null(parse(rows[i].text, &err));
		assert_int_equal(err.code, ERR_CONFIG);
		for (size_t j = 0; j < ARRAY_SIZE(rows[i].words); j++)
			if (!strstr(err.msg, rows[i].words[j]))
				fail_msg("row %zu: %s", i, err.msg);
	}
}

static void too_long_list_is_refused(void **state)
{
	static char text[5000] = "allowed_hosts: [";
	struct error err = {0};

	(void)state;
	memset(text + 16, 'x', 4200);
	assert_int_equal(str_copy(text + 4216, 4, "]\n"), 0);
	assert_null(parse(text, &err));
	assert_non_null(strstr(err.msg, "too long"));
}

static void long_file_name_does_not_hide_the_line(void **state)
{
	char name[300];
	struct error err = {0};

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_null(config_parse("\nx: 1\n", 6, name, NULL, 0, &err));
	assert_non_null(strstr(err.msg, "line 2: unknown key 'x'"));
}

static void environment_goes_over_file_and_flags_over_both(void **state)
{
	const struct config_override flags[] = {{"limits.timeout", "9s"}, {"log_level", "debug"}};
	const char *text = "limits: {timeout: 3s}\n";
	struct error err = {0};
	struct config *c;

	(void)state;
	assert_int_equal(setenv("MILLIBOX_LIMITS_TIMEOUT", "7s", 1), 0);
	assert_int_equal(setenv("MILLIBOX_ALLOWED_HOSTS", "x,y", 1), 0);
	c = parse_good(text);
	assert_int_equal(c->timeout_us, 7000000);
	assert_string_equal(c->allowed_hosts[1], "y");
	config_free(c);
	c = config_parse(text, strlen(text), "c.yaml", flags, ARRAY_SIZE(flags), &err);
	assert_non_null(c);
	assert_int_equal(c->timeout_us, 9000000);
	assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
	config_free(c);
	assert_int_equal(unsetenv("MILLIBOX_ALLOWED_HOSTS"), 0);

	assert_int_equal(setenv("MILLIBOX_LIMITS_TIMEOUT", "never", 1), 0);
	assert_null(parse(text, &err));
	assert_non_null(strstr(err.msg, "MILLIBOX_LIMITS_TIMEOUT: 'limits.timeout' must be"));
	assert_int_equal(unsetenv("MILLIBOX_LIMITS_TIMEOUT"), 0);
}

static void a_misspelled_variable_is_reported(void **state)
{
	struct error err = {0};
	struct config *c;

	(void)state;
	assert_int_equal(setenv("MILLIBOX_LIMITS_TIMEOUU", "7s", 1), 0);
	assert_null(parse(NULL, &err));
	assert_non_null(strstr(err.msg, "MILLIBOX_LIMITS_TIMEOUU: unknown key 'limits.timeouu', "
	                                "did you mean 'limits.timeout'?"));
	assert_int_equal(unsetenv("MILLIBOX_LIMITS_TIMEOUU"), 0);
	/* Not of our groups: may belong to another program. */
	assert_int_equal(setenv("MILLIBOX_MUST_WORK", "1", 1), 0);
	assert_int_equal(setenv("MILLIBOX_", "1", 1), 0);
	assert_int_equal(
		setenv("MILLIBOX_A_VERY_LONG_NAME_THAT_NO_SETTING_OF_OURS_COULD_EVER_HAVE", "1", 1),
		0);
	c = parse_good(NULL);
	config_free(c);
	assert_int_equal(unsetenv("MILLIBOX_MUST_WORK"), 0);
	assert_int_equal(unsetenv("MILLIBOX_"), 0);
}

static void invalid_flags_are_reported(void **state)
{
	const struct config_override unknown = {"limits.tim", "1"};
	const struct config_override wrong = {"isolation", "perhaps"};
	struct error err = {0};

	(void)state;
	assert_null(config_load(NULL, &unknown, 1, &err));
	assert_non_null(strstr(err.msg, "command line: unknown key 'limits.tim'"));
	error_clear(&err);
	assert_null(config_load(NULL, &wrong, 1, &err));
	assert_non_null(strstr(err.msg, "command line: 'isolation' must be strict or best-effort"));
}

static void dump_loads_to_the_same(void **state)
{
	attr_cleanup(config_freep) struct config *first =
		parse_good("listen: '[::1]:9'\nuser: \"q\\\"b\\\\s\"\nallowed_hosts: [a, "
	                   "b]\nisolation: best-effort\n"
	                   "log_level: warn\nlog_format: json\nuid_base: 70000\n"
	                   "limits: {cpu: 0.25, timeout: 1.000001, output: 1025, disk: 3Mi}\n");
	cleanup_free char *once = dump(first);
	attr_cleanup(config_freep) struct config *second = parse_good(once);
	cleanup_free char *twice = dump(second);

	(void)state;
	assert_string_equal(once, twice);
	assert_string_equal(second->user, "q\"b\\s");
	assert_int_equal(second->timeout_us, 1000001);
	assert_int_equal(second->cpu_millicores, 250);
	assert_int_equal(second->output_bytes, 1025);
	assert_int_equal(second->isolation, CONFIG_ISOLATION_BEST_EFFORT);
	assert_non_null(strstr(once, "\nlimits:\n  # "));
}

static char *dump_json(const struct config *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	config_dump_json(c, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void json_has_the_same_values(void **state)
{
	attr_cleanup(config_freep) struct config *c =
		parse_good("user: \"q\\\"b\\\\s\"\nallowed_hosts: [a, b]\nlog_level: warn\n"
	                   "limits: {cpu: 0.25, timeout: 1.5, disk: 3Mi}\n");
	cleanup_free char *text = dump_json(c);

	(void)state;
	assert_ptr_equal(strstr(text, "{\"listen\": \"127.0.0.1:8000\", "), text);
	assert_non_null(strstr(text, "\"user\": \"q\\\"b\\\\s\", "));
	assert_non_null(strstr(text,
	                       "\"auth\": {\"trust_socket\": true}, \"allowed_hosts\": [\"a\", "
	                       "\"b\"], "));
	assert_non_null(strstr(text, "\"log_level\": \"warn\", "));
	assert_non_null(
		strstr(text, "\"uid_base\": 1879048192, \"http\": {\"max_connections\": 2048, "));
	assert_non_null(strstr(text, "\"limits\": {\"timeout\": \"1500ms\", "));
	assert_non_null(strstr(text, "\"disk\": \"3Mi\", "));
	assert_string_equal(text + strlen(text) - 3, "}}\n");
}

static void file_is_read(void **state)
{
	char path[] = "/tmp/millibox-config-XXXXXX";
	struct error err = {0};
	struct config *c;
	int fd;

	(void)state;
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "isolation: best-effort\n", 23), 23);
	(void)close(fd);
	c = config_load(path, NULL, 0, &err);
	assert_non_null(c);
	assert_int_equal(c->isolation, CONFIG_ISOLATION_BEST_EFFORT);
	config_free(c);
	assert_int_equal(truncate(path, 0), 0);
	c = config_load(path, NULL, 0, &err);
	assert_non_null(c);
	config_free(c);
	assert_int_equal(truncate(path, 1 << 20), 0);
	assert_null(config_load(path, NULL, 0, &err));
	assert_int_equal(err.sys, EFBIG);
	(void)unlink(path);
	error_clear(&err);
	assert_null(config_load(path, NULL, 0, &err));
	assert_int_equal(err.sys, ENOENT);
	assert_non_null(strstr(err.msg, path));
}

static void help_names_every_key_and_variable(void **state)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	config_help(out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "limits.timeout (30s, MILLIBOX_LIMITS_TIMEOUT): "));
	assert_non_null(strstr(text, "user (none, MILLIBOX_USER): "));
	assert_non_null(strstr(text, "MILLIBOX_RUNNERS_DIR"));
}

static void nothing_is_freed_as_well(void **state)
{
	(void)state;
	config_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_documented_ones),
		cmocka_unit_test(a_local_peer_may_have_a_part_of_the_connections),
		cmocka_unit_test(file_sets_nested_keys),
		cmocka_unit_test(what_is_given_is_known),
		cmocka_unit_test(errors_name_file_line_and_key),
		cmocka_unit_test(too_long_list_is_refused),
		cmocka_unit_test(long_file_name_does_not_hide_the_line),
		cmocka_unit_test(environment_goes_over_file_and_flags_over_both),
		cmocka_unit_test(a_misspelled_variable_is_reported),
		cmocka_unit_test(invalid_flags_are_reported),
		cmocka_unit_test(dump_loads_to_the_same),
		cmocka_unit_test(json_has_the_same_values),
		cmocka_unit_test(file_is_read),
		cmocka_unit_test(help_names_every_key_and_variable),
		cmocka_unit_test(nothing_is_freed_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
