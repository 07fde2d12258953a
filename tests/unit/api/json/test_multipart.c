/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/json/multipart.h"
#include "base/buf.h"
#include <stdio.h>
#include <string.h>

#define TYPE "multipart/form-data; boundary=B"

struct seen {
	struct buf text;
	size_t most; /* bytes taken at a time */
	const char *refused;
};

static int on_part(void *ctx, const char *name, const char *filename, struct error *err)
{
	struct seen *s = ctx;

	if (s->refused && strcmp(name, s->refused) == 0)
		return error_field(err, name, "is not wanted");
	return buf_addf(&s->text, "[%s|%s]", name, filename ? filename : "-");
}

static ssize_t on_data(void *ctx, const char *data, size_t len, struct error *err)
{
	struct seen *s = ctx;
	size_t n = len < s->most ? len : s->most;

	(void)err;
	assert_true(len > 0);
	assert_int_equal(buf_add(&s->text, data, n), 0);
	return (ssize_t)n;
}

static int on_part_end(void *ctx, struct error *err)
{
	struct seen *s = ctx;

	(void)err;
	return buf_add_str(&s->text, ";");
}

/* Return: whether it was complete; -1: refused. @step: how much of it comes at a time. */
static int read_form(const char *form, size_t len, size_t step, struct seen *s, struct error *err)
{
	const struct multipart_events events = {s, on_part, on_data, on_part_end};
	struct multipart *m = multipart_new(TYPE, &events, err);
	ssize_t used = 0;
	int complete;

	assert_non_null(m);
	for (size_t at = 0, idle = 0; used >= 0 && at<len; at += used> 0 ? (size_t)used : 0) {
		used = multipart_feed(m, form + at, len - at < step ? len - at : step, err);
		idle = used == 0 ? idle + 1 : 0;
		assert_true(idle < 1000);
	}
	complete = used < 0 ? -1 : multipart_is_complete(m);
	multipart_free(m);
	return complete;
}

static void content_types_without_a_boundary_are_refused(void **state)
{
	static const char *const bad[] = {
		"", "text/plain", "multipart/form-data",
		"multipart/form-data; boundary=", "multipart/mixed; boundary=B"};
	struct seen s = {BUF_INIT(64), SIZE_MAX, NULL};
	const struct multipart_events events = {&s, on_part, on_data, on_part_end};
	char longest[128];
	struct multipart *m;
	struct error err = {0};

	(void)state;
	assert_null(multipart_new(NULL, &events, &err));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct error){0};
		assert_null(multipart_new(bad[i], &events, &err));
		assert_true(error_is_set(&err));
	}
	for (int len = MULTIPART_BOUNDARY_MAX; len <= MULTIPART_BOUNDARY_MAX + 1; len++) {
		err = (struct error){0};
		(void)snprintf(longest, sizeof(longest), "multipart/form-data; boundary=%0*d", len,
		               0);
		m = multipart_new(longest, &events, &err);
		assert_int_equal(m != NULL, len <= MULTIPART_BOUNDARY_MAX);
		multipart_free(m);
	}
}

static void the_pieces_do_not_matter(void **state)
{
	static const char form[] =
		"preamble\r\n--B\r\n"
		"Content-Disposition: form-data; name=\"path\"\r\n\r\na/b\r\n"
		"--B\r\nContent-Type: text/plain\r\n"
		"Content-Disposition: form-data; name=\"file\"; filename=\"f.txt\"\r\n\r\n"
		"one\r\n-Bnot\r\n-two\r\r\n\r\n--B--\r\nepilogue";
	static const char expected[] = "[path|-]a/b;[file|f.txt]one\r\n-Bnot\r\n-two\r\r\n;";
	static const size_t steps[] = {1, 2, 3, 7, 4096};
	static const size_t takes[] = {1, 5, SIZE_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps) * ARRAY_SIZE(takes); i++) {
		struct seen s = {BUF_INIT(4096), takes[i % ARRAY_SIZE(takes)], NULL};
		struct error err = {0};

		assert_int_equal(
			read_form(form, strlen(form), steps[i / ARRAY_SIZE(takes)], &s, &err), 1);
		assert_string_equal(s.text.data, expected);
		buf_done(&s.text);
	}
}

static void a_form_that_is_cut_off_is_not_complete(void **state)
{
	static const char form[] =
		"--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--B--\r\n";

	(void)state;
	for (size_t len = 0; len < strlen(form); len++) {
		struct seen s = {BUF_INIT(4096), SIZE_MAX, NULL};
		struct error err = {0};
		/* The line's end behind the last boundary belongs to no part. */
		bool whole = len >= strlen(form) - 2;

		assert_int_equal(read_form(form, len, 4096, &s, &err), whole);
		buf_done(&s.text);
	}
}

static void malformed_or_excessive_input_is_refused(void **state)
{
	static const char *const bad[] = {
		"--B\r\n\r\nx\r\n--B--",                                      /* no name */
		"--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--",    /* neither */
		"--B\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n", /* no form */
		"--B\r\nno header at all\r\n\r\n",
	};
	char form[2 * MULTIPART_HEADERS_MAX];
	struct error err = {0};
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct seen s = {BUF_INIT(4096), SIZE_MAX, NULL};

		err = (struct error){0};
		assert_int_equal(read_form(bad[i], strlen(bad[i]), 4096, &s, &err), -1);
		assert_true(error_is_set(&err));
		buf_done(&s.text);
	}
	for (unsigned parts = MULTIPART_PARTS_MAX; parts <= MULTIPART_PARTS_MAX + 1; parts++) {
		struct seen s = {BUF_INIT(4096), SIZE_MAX, NULL};

		len = 0;
		for (unsigned i = 0; i < parts; i++)
			len += (size_t)snprintf(
				form + len, sizeof(form) - len,
				"--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n");
		len += (size_t)snprintf(form + len, sizeof(form) - len, "--B--\r\n");
		err = (struct error){0};
		assert_int_equal(read_form(form, len, 4096, &s, &err),
		                 parts <= MULTIPART_PARTS_MAX ? 1 : -1);
		buf_done(&s.text);
	}
	{
		struct seen s = {BUF_INIT(4096), SIZE_MAX, NULL};

		(void)snprintf(form, sizeof(form), "--B\r\nX: %0*d", MULTIPART_HEADERS_MAX + 10, 0);
		err = (struct error){0};
		assert_int_equal(read_form(form, strlen(form), 100, &s, &err), -1);
		buf_done(&s.text);
	}
}

static void an_error_of_the_taker_ends_the_form(void **state)
{
	static const char form[] =
		"--B\r\nContent-Disposition: form-data; name=\"bad\"\r\n\r\nx\r\n--B--\r\n";
	struct seen s = {BUF_INIT(4096), SIZE_MAX, "bad"};
	struct error err = {0};

	(void)state;
	assert_int_equal(read_form(form, strlen(form), 4096, &s, &err), -1);
	assert_string_equal(err.field, "bad");
	assert_int_equal(s.text.len, 0);
	buf_done(&s.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_types_without_a_boundary_are_refused),
		cmocka_unit_test(the_pieces_do_not_matter),
		cmocka_unit_test(a_form_that_is_cut_off_is_not_complete),
		cmocka_unit_test(malformed_or_excessive_input_is_refused),
		cmocka_unit_test(an_error_of_the_taker_ends_the_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
