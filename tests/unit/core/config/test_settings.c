/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "core/config/settings.h"

static void release(struct config *c)
{
	for (size_t i = 0; i < settings_count(); i++)
		setting_done(settings_at(i), c);
}

static void print(const struct setting *s, const struct config *c, char *ret_text, size_t size)
{
	FILE *out = fmemopen(ret_text, size, "w");

	assert_non_null(out);
	setting_print(s, c, out);
	assert_int_equal(fclose(out), 0);
}

static void every_row_is_sound(void **state)
{
	struct config c = {0};
	char why[SETTING_WHY_LEN];
	char env[SETTING_ENV_LEN];

	(void)state;
	for (size_t i = 0; i < settings_count(); i++) {
		const struct setting *s = settings_at(i);

		assert_ptr_equal(settings_find(s->key), s); /* no duplicate key */
		assert_true(strlen(s->help) > 5);
		setting_env(s, env);
		assert_true(str_has_prefix(env, "MILLIBOX_"));
		assert_int_equal(strlen(env), strlen("MILLIBOX_") + strlen(s->key));
		if (s->fallback && setting_set(s, &c, s->fallback, why) < 0)
			fail_msg("%s: default %s", s->key, why);
	}
	assert_null(settings_at(settings_count()));
	release(&c);
}

static void values_are_parsed_and_printed_in_canonical_form(void **state)
{
	static const struct {
		const char *key, *text, *printed;
	} rows[] = {
		{"listen", "127.0.0.1:0", "\"127.0.0.1:0\""},
		{"listen", "[::1]:65535", "\"[::1]:65535\""},
		{"listen", "127.9.9.9:80", "\"127.9.9.9:80\""},
		{"listen", "", "\"\""},
		{"socket", "/a \"b\"\\c", "\"/a \\\"b\\\"\\\\c\""},
		{"user", "n\xc3\xa4me", "\"n\xc3\xa4me\""},
		{"allowed_hosts", "a, b ,c", "[\"a\", \"b\", \"c\"]"},
		{"allowed_hosts", "", "[]"},
		{"auth.trust_socket", "off", "false"},
		{"isolation", "best-effort", "best-effort"},
		{"uid_base", "65536", "65536"},
		{"log_level", "debug", "debug"},
		{"log_format", "json", "json"},
		{"http.max_body", "2048", "2Ki"},
		{"http.max_body", "1025", "1025"},
		{"limits.timeout", "90", "90s"},
		{"limits.timeout", "1.5", "1500ms"},
		{"limits.timeout", "0.001001", "0.001001"},
		{"limits.cpu", "500m", "0.5"},
		{"limits.cpu_max", "0", "0"},
	};
	struct config c = {0};
	char why[SETTING_WHY_LEN];
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct setting *s = settings_find(rows[i].key);

		if (setting_set(s, &c, rows[i].text, why) < 0)
			fail_msg("row %zu: %s", i, why);
		print(s, &c, text, sizeof(text));
		assert_string_equal(text, rows[i].printed);
	}
	release(&c);
}

static void wrong_values_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *key, *text, *why;
	} rows[] = {
		{"listen", "localhost:8000", "a numeric address"},
		{"listen", "127.0.0.1", "a numeric address"},
		{"listen", "127.0.0.1:65536", "a numeric address"},
		{"listen", "127.0.0.1:", "a numeric address"},
		{"listen", ":8000", "a numeric address"},
		{"listen", "::1:8000", "a numeric address"},
		{"listen", "[127.0.0.1]:8000", "a numeric address"},
		{"listen", "[]:8000", "a numeric address"},
		{"socket", "run/x.sock", "absolute"},
		{"user", "a\nb", "control"},
		{"user", "a\x7f", "control"},
		{"user", "\xff", "control"},
		{"user", "\xc2\x85", "control"},
		{"user", "a\xe2\x80\xa8", "control"},
		{"user", "\xef\xbb\xbfx", "control"},
		{"allowed_hosts", "a,,b", "list"},
		{"allowed_hosts", "a,", "list"},
		{"allowed_hosts", " ", "list"},
		{"auth.trust_socket", "maybe", "true or false"},
		{"isolation", "true", "strict or best-effort"},
		{"isolation", "Best-Effort", "strict or best-effort"},
		{"log_level", "loud", "debug"},
		{"log_format", "xml", "json"},
		{"uid_base", "0", "between 65536 and"},
		{"uid_base", "4294967295", "between 65536 and"},
		{"uid_base", "99999999999999999999999", "between 65536 and"},
		{"uid_base", "-1", "a whole number"},
		{"uid_base", "1e3", "a whole number"},
		{"http.max_body", "2Gi", "between 1Ki and 64Mi"},
		{"http.max_body", "big", "a size such as"},
		{"limits.memory", "15Mi", "between 16Mi and"},
		{"limits.timeout", "0", "between 1ms and"},
		{"limits.timeout", "-3", "a time such as"},
		{"limits.timeout", "soon", "a time such as"},
		{"limits.cpu", "0", "between 0.01 and"},
		{"limits.cpu", "many", "cores"},
		{"limits.processes", "15", "between 16 and"},
	};
	struct config c = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char why[SETTING_WHY_LEN] = "";

		assert_int_equal(setting_set(settings_find(rows[i].key), &c, rows[i].text, why),
		                 -EINVAL);
		if (!str_has_prefix(why, "must be ") || !strstr(why, rows[i].why))
			fail_msg("row %zu: %s", i, why);
	}
	release(&c);
}

static void refused_value_changes_nothing(void **state)
{
	struct config c = {.timeout_us = 7};
	char why[SETTING_WHY_LEN];

	(void)state;
	assert_int_equal(setting_set(settings_find("user"), &c, "me", why), 0);
	assert_int_equal(setting_set(settings_find("user"), &c, "\n", why), -EINVAL);
	assert_int_equal(setting_set(settings_find("limits.timeout"), &c, "x", why), -EINVAL);
	assert_string_equal(c.user, "me");
	assert_int_equal(c.timeout_us, 7);
	release(&c);
}

static void long_list_and_long_text_are_refused(void **state)
{
	static char text[8192];
	struct config c = {0};
	char why[SETTING_WHY_LEN];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 64; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "a,");
	text[n - 1] = '\0';
	assert_int_equal(setting_set(settings_find("allowed_hosts"), &c, text, why), 0);
	assert_int_equal(str_list_count(c.allowed_hosts), 64);
	text[n - 1] = ',';
	text[n] = 'a';
	assert_int_equal(setting_set(settings_find("allowed_hosts"), &c, text, why), -EINVAL);
	memset(text, 'x', 4097);
	assert_int_equal(setting_set(settings_find("user"), &c, text, why), -EINVAL);
	text[4096] = '\0';
	assert_int_equal(setting_set(settings_find("user"), &c, text, why), 0);
	release(&c);
}

static void likely_keys_are_suggested(void **state)
{
	static const struct {
		const char *typed, *meant;
	} rows[] = {
		{"limits.timeouu", "limits.timeout"},
		{"limits.timeoutt", "limits.timeout"},
		{"timeout", "limits.timeout"},
		{"http.memory", "limits.memory"},
		{"lisen", "listen"},
		{"log_levle", "log_level"},
		{"completely_different", NULL},
		{"", NULL},
		{"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *got = settings_suggest(rows[i].typed);

		if (!rows[i].meant)
			assert_null(got);
		else
			assert_string_equal(got ? got : "nothing", rows[i].meant);
	}
}

static void groups_and_variables_follow_from_the_key(void **state)
{
	char name[SETTING_ENV_LEN];

	(void)state;
	assert_true(settings_has_group("limits"));
	assert_false(settings_has_group("limit"));
	assert_false(settings_has_group("listen"));
	setting_env(settings_find("limits.timeout_max"), name);
	assert_string_equal(name, "MILLIBOX_LIMITS_TIMEOUT_MAX");
	assert_null(settings_find("nope"));
}

/* The first argument of this program: docs/man/millibox.yaml.5.scd. */
static const char *man_page;

static void manual_names_every_key(void **state)
{
	cleanup_buf struct buf page = BUF_INIT(1 << 20);
	char word[80];

	(void)state;
	if (!man_page)
		skip();
	assert_int_equal(file_read_at(AT_FDCWD, man_page, &page), 0);
	for (size_t i = 0; i < settings_count(); i++) {
		assert_int_equal(str_format(word, sizeof(word), "*%s*", settings_at(i)->key), 0);
		if (!strstr(page.data, word))
			fail_msg("%s does not tell of %s", man_page, settings_at(i)->key);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_sound),
		cmocka_unit_test(values_are_parsed_and_printed_in_canonical_form),
		cmocka_unit_test(wrong_values_are_refused_with_the_reason),
		cmocka_unit_test(refused_value_changes_nothing),
		cmocka_unit_test(long_list_and_long_text_are_refused),
		cmocka_unit_test(likely_keys_are_suggested),
		cmocka_unit_test(groups_and_variables_follow_from_the_key),
		cmocka_unit_test(manual_names_every_key),
	};

	man_page = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
