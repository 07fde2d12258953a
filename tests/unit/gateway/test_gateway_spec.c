/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/spec.h"
#include "unit.h"

#include "base/alloc.h"
#include "base/str.h"
#include <errno.h>
#include <string.h>

static struct server_spec *make(const char *name, const char *url)
{
	struct server_spec *s = spec_new();

	free(s->name);
	free(s->url);
	s->name = xstrdup(name);
	s->url = xstrdup(url);
	s->argv = xrealloc_array(s->argv, 3, sizeof(*s->argv));
	s->argv[0] = xstrdup("node");
	s->argv[1] = xstrdup("");
	s->argv[2] = NULL;
	s->calls = 7;
	s->timeout_us = 1500000;
	return s;
}

static void a_message_is_read_back(void **state)
{
	struct server_spec *s = make("git-hub", ""), *back;
	struct error err = {0};
	struct buf message;
	char *url;

	(void)state;
	assert_int_equal(spec_write(s, &message), 0);
	back = spec_read(message.data, message.len, &err);
	assert_non_null(back);
	assert_string_equal(back->name, "git-hub");
	assert_int_equal(str_list_count(back->argv), 2);
	assert_int_equal(str_list_count(back->env), 0);
	assert_int_equal(back->calls, 7);
	assert_int_equal(back->timeout_us, 1500000);
	url = spec_url(back);
	assert_string_equal(url, "mcp://git-hub");
	free(url);
	spec_free(back);
	/* Cut off anywhere. */
	for (size_t len = 0; len < message.len; len++) {
		char *part = xmemdup0(message.data, len);

		error_clear(&err);
		assert_null(spec_read(part, len, &err));
		assert_true(error_is_set(&err));
		free(part);
	}
	buf_done(&message);
	spec_free(s);
}

static void a_message_that_is_too_long_is_refused(void **state)
{
	struct server_spec *s = make("a", "");
	struct buf message;

	(void)state;
	free(s->argv[1]);
	s->argv[1] = xcalloc(1, GATEWAY_MESSAGE_MAX);
	memset(s->argv[1], 'x', GATEWAY_MESSAGE_MAX - 1);
	assert_int_equal(spec_write(s, &message), -ENOBUFS);
	buf_done(&message);
	spec_free(s);
}

static void names_are_plain(void **state)
{
	static const char *const bad[] = {"", "A", "1a", "-a", "a/b", "a.b", "a b", "\xc3\xa9"};

	(void)state;
	assert_true(spec_is_name("a"));
	assert_true(spec_is_name("git_hub-2"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(spec_is_name(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_read_back),
		cmocka_unit_test(a_message_that_is_too_long_is_refused),
		cmocka_unit_test(names_are_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
