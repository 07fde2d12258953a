/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "cli/run_request.h"

/* Writes a file; the path is valid until the next call. */
static const char *file_of(const char *suffix, const void *data, size_t len)
{
	static char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/tmp/mbxunit-%d%s", (int)getpid(), suffix);
	fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
	(void)fd_close(fd);
	return path;
}

/* The body for @options and -c or @word, as JSON; NULL with *err. */
static json_t *build(const struct run_options *options, const char *word, struct args *args,
                     struct error *err)
{
	struct args none = {0};
	struct run_input input = {0};
	struct millibox_request *request = NULL;
	json_t *body = NULL;

	*err = (struct error){0};
	if (run_request_read(options, word, &input, err) == 0)
		request = run_request_build(options, &input, args ? args : &none, err);
	if (request)
		body = json_loads(millibox_request_json(request), JSON_REJECT_DUPLICATES, NULL);
	assert_true(!request == !body);
	assert_true(!body == (bool)error_is_set(err));
	millibox_request_free(request);
	run_input_done(&input);
	return body;
}

static void take_file_name(json_t *body, const char *path)
{
	assert_string_equal(json_string_value(json_object_get(body, "file_name")),
	                    strrchr(path, '/') + 1);
	assert_int_equal(json_object_del(body, "file_name"), 0);
}

static void check(json_t *body, const char *expected)
{
	json_t *other = json_loads(expected, 0, NULL);

	assert_non_null(other);
	if (!json_equal(body, other)) {
		char *text = json_dumps(body, 0);

		fail_msg("%s, not %s", text, expected);
	}
	json_decref(other);
	json_decref(body);
}

static void only_given_options_are_sent(void **state)
{
	struct run_options options = {.code = "print(1)"};
	struct error err;

	(void)state;
	check(build(&options, NULL, NULL, &err),
	      "{\"default_language\":\"python\",\"code\":\"print(1)\"}");
}

static void a_session_has_a_default_language(void **state)
{
	struct run_options options = {.code = "print(1)", .in_session = true};
	const char *path;
	struct error err;
	json_t *body;

	(void)state;
	check(build(&options, NULL, NULL, &err), "{\"code\":\"print(1)\"}");
	path = file_of(".sh", "true", 4);
	body = build(&options, path, NULL, &err);
	assert_int_equal(unlink(path), 0);
	assert_null(json_object_get(body, "default_language"));
	take_file_name(body, path);
	json_decref(body);
}

static void sessions_share_the_common_fields(void **state)
{
	const char *env[] = {"A=1"};
	struct run_options options = {
		.timeout_us = 2000000, .memory_bytes = 1UL << 30, .env = {env, 1}};
	struct error err = {0};

	(void)state;
	check(run_request_common(&options, &err),
	      "{\"timeout\":2.0,\"resources\":{\"memory\":\"1Gi\"},\"env_vars\":{\"A\":\"1\"}}");
	options.env.items[0] = "novalue";
	assert_null(run_request_common(&options, &err));
	assert_int_equal(err.code, ERR_INVALID);
}

static void every_option_has_its_field_and_unit(void **state)
{
	const char *env[] = {"A=b=c", "E="};
	char first[] = "a", second[] = "-b", *rest[] = {first, second, NULL};
	struct args args = {.rest = rest, .rest_count = 2};
	struct run_options options = {
		.code = "true",
		.language = "shell",
		.timeout_us = 1500000,
		.memory_bytes = 1UL << 30,
		.disk_bytes = 5000,
		.cpu_millicores = 500,
		.processes = 7,
		.output_bytes = 1024,
		.env = {env, 2},
	};
	struct error err;

	(void)state;
	check(build(&options, NULL, &args, &err),
	      "{\"language\":\"shell\",\"code\":\"true\",\"args\":[\"a\",\"-b\"],\"timeout\":1.5,"
	      "\"resources\":{\"cpu\":\"0.5\",\"memory\":\"1Gi\",\"disk\":\"5000\","
	      "\"max_processes\":7,\"max_output\":1024},\"env_vars\":{\"A\":\"b=c\",\"E\":\"\"}}");
}

static void binary_files_are_sent_as_base64(void **state)
{
	char text[96], nul[96], raw[96];
	const char *files[3] = {text, nul, raw};
	struct run_options options = {.code = "1", .language = "python", .files = {files, 3}};
	struct error err;
	json_t *body;

	(void)state;
	(void)snprintf(text, sizeof(text), "t=%s", file_of("t", "h\xc3\xa9", 3));
	(void)snprintf(nul, sizeof(nul), "n=%s", file_of("n", "a\0b", 3));
	(void)snprintf(raw, sizeof(raw), "d/r=%s", file_of("r", "\xff\xfe\xfd\xfc", 4));
	body = build(&options, NULL, NULL, &err);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(unlink(strchr(files[i], '=') + 1), 0);
	check(body, "{\"language\":\"python\",\"code\":\"1\",\"files\":{\"t\":\"h\xc3\xa9\","
	            "\"n\":{\"base64\":\"YQBi\"},\"d/r\":{\"base64\":\"//79/A==\"}}}");
}

static void stdin_may_be_any_bytes(void **state)
{
	struct run_options options = {.code = "1", .language = "python"};
	struct error err;
	json_t *body;

	(void)state;
	options.stdin_path = file_of("s", "\x80", 1);
	body = build(&options, NULL, NULL, &err);
	assert_int_equal(unlink(options.stdin_path), 0);
	check(body, "{\"language\":\"python\",\"code\":\"1\",\"stdin\":{\"base64\":\"gA==\"}}");
}

static void an_empty_file_is_an_empty_program(void **state)
{
	struct run_options options = {.language = "python"};
	const char *path = file_of(".py", "", 0);
	struct error err;
	json_t *body = build(&options, path, NULL, &err);

	(void)state;
	assert_int_equal(unlink(path), 0);
	take_file_name(body, path);
	/* The daemon decides whether it can run this. */
	check(body, "{\"language\":\"python\",\"code\":\"\"}");
}

static void the_daemon_chooses_by_the_name_of_the_file(void **state)
{
	const char *path = file_of(".rb", "#!/bin/sh\n", 10);
	struct run_options options = {0};
	struct error err;
	json_t *body = build(&options, path, NULL, &err);

	(void)state;
	assert_null(json_object_get(body, "language"));
	assert_string_equal(json_string_value(json_object_get(body, "default_language")), "python");
	take_file_name(body, path);
	json_decref(body);
	options.language = "shell";
	body = build(&options, path, NULL, &err);
	assert_int_equal(unlink(path), 0);
	take_file_name(body, path);
	check(body, "{\"language\":\"shell\",\"code\":\"#!/bin/sh\\n\"}");
}

static void refuse(const struct run_options *options, const char *word, enum error_code code,
                   const char *part)
{
	struct error err;

	assert_null(build(options, word, NULL, &err));
	assert_int_equal(err.code, code);
	if (!strstr(err.msg, part))
		fail_msg("'%s' is not in '%s'", part, err.msg);
}

static void refuse_pair(bool is_file, const char *pair, enum error_code code, const char *part)
{
	struct run_options options = {.code = "1"};
	const char *items[] = {pair};

	*(is_file ? &options.files : &options.env) = (struct option_list){items, 1};
	refuse(&options, NULL, code, part);
}

static void invalid_pairs_are_rejected(void **state)
{
	(void)state;
	refuse_pair(false, "A", ERR_INVALID, "'A' is not NAME=VALUE");
	refuse_pair(false, "=x", ERR_INVALID, "'=x' is not NAME=VALUE");
	refuse_pair(false, "A=\xff", ERR_INVALID, "not UTF-8");
	refuse_pair(true, "/etc/", ERR_INVALID, "'/etc/' is not PATH or NAME=PATH");
	refuse_pair(true, "", ERR_INVALID, "'' is not PATH or NAME=PATH");
	refuse_pair(true, "x=", ERR_INVALID, "'x=' is not PATH or NAME=PATH");
	refuse_pair(true, "=/etc/hostname", ERR_INVALID, "is not PATH or NAME=PATH");
	refuse_pair(true, "\xff=/etc/hostname", ERR_INVALID, "not UTF-8");
	refuse_pair(true, "x=/nonexistent", ERR_NOT_FOUND, "read /nonexistent");
}

static void a_file_name_given_twice_is_rejected(void **state)
{
	const char *items[] = {"a=/dev/null", "a=/dev/null"};
	struct run_options options = {.code = "1", .files = {items, 2}};

	(void)state;
	refuse(&options, NULL, ERR_INVALID, "'a' is given twice");
}

static void unreadable_and_unsendable_input_is_rejected(void **state)
{
	struct run_options none = {0};
	struct run_options both = {.stdin_path = "-"};
	struct run_options bad = {.code = "\xff"};

	(void)state;
	refuse(&none, "/nonexistent.py", ERR_NOT_FOUND, "read /nonexistent.py");
	refuse(&none, "/", ERR_NOT_FOUND, "read /");
	refuse(&both, "-", ERR_INVALID, "cannot be both");
	refuse(&bad, NULL, ERR_BAD_MEDIA, "not UTF-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_given_options_are_sent),
		cmocka_unit_test(a_session_has_a_default_language),
		cmocka_unit_test(sessions_share_the_common_fields),
		cmocka_unit_test(every_option_has_its_field_and_unit),
		cmocka_unit_test(binary_files_are_sent_as_base64),
		cmocka_unit_test(stdin_may_be_any_bytes),
		cmocka_unit_test(an_empty_file_is_an_empty_program),
		cmocka_unit_test(the_daemon_chooses_by_the_name_of_the_file),
		cmocka_unit_test(invalid_pairs_are_rejected),
		cmocka_unit_test(a_file_name_given_twice_is_rejected),
		cmocka_unit_test(unreadable_and_unsendable_input_is_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
