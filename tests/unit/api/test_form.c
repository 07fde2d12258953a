/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/form.h"
#include "api/se.h"
#include <errno.h>
#include <string.h>

#define TYPE  "multipart/form-data; boundary=XX"
#define FIRST "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n"
#define FILE_                                                                                      \
	"--XX\r\ncontent-disposition: form-data; name=\"file\"; filename=\"n.txt\"\r\nX: "         \
	"y\r\n\r\n"
#define LAST "\r\n--XX--\r\n"

static int look(const char *type, const char *body, struct form_part *part)
{
	return form_find(type, body, strlen(body), "file", part);
}

static void a_part_is_found_by_its_name(void **state)
{
	struct form_part part = {0};

	(void)state;
	assert_int_equal(look(TYPE, FIRST FILE_ "two\r\n--X" LAST, &part), 0);
	assert_int_equal(part.len, 8);
	assert_memory_equal(part.data, "two\r\n--X", 8);
	assert_string_equal(part.filename, "n.txt");
	assert_int_equal(look(TYPE, FILE_ LAST, &part), 0);
	assert_int_equal(part.len, 0);
	assert_int_equal(
		look("Multipart/Form-Data; charset=x; boundary=\"XX\"", FILE_ "z" LAST, &part), 0);
	assert_int_equal(look(TYPE, FIRST "--XX--", &part), -ENOENT);
}

static void what_is_no_form_is_refused(void **state)
{
	static const char *const bodies[] = {"",          "--XX",         "--XX\r\n", FILE_,
	                                     FILE_ "cut", "--YY\r\n\r\n", FIRST "--X"};
	struct form_part part = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		assert_true(look(TYPE, bodies[i], &part) < 0);
	assert_int_equal(look("text/plain", FILE_ LAST, &part), -EINVAL);
	assert_int_equal(look("multipart/form-data", FILE_ LAST, &part), -EINVAL);
	assert_int_equal(look("multipart/form-data; boundary=", FILE_ LAST, &part), -EINVAL);
	assert_int_equal(look(NULL, FILE_ LAST, &part), -EINVAL);
}

static void errors_have_the_dialect_s_words(void **state)
{
	struct error err = {.code = ERR_BUSY, .msg = "full"};
	int status = 429;
	json_t *j;

	(void)state;
	assert_true(se_is_path("/workspace/se/healthy"));
	assert_false(se_is_path("/api/v1/workspace/se/"));
	j = se_error_object(&err, "r", "/workspace/se/v2/execute_code", &status);
	assert_int_equal(status, 503);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(j, "detail"), "error_code")),
		"Sandbox.TooManyRequestsExection");
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_is_found_by_its_name),
		cmocka_unit_test(what_is_no_form_is_refused),
		cmocka_unit_test(errors_have_the_dialect_s_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
