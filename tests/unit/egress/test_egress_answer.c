/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/answer.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

/* Every answer is one complete message, whatever it is about. */
static void check_answer(enum egress_reason reason, const struct target *target, const char *detail)
{
	char text[ANSWER_MAX];
	size_t len = answer_http(reason, target, detail, text);
	const char *end = strstr(text, "\r\n\r\n");
	char length[64];

	assert_int_equal(strlen(text), len);
	assert_memory_equal(text, "HTTP/1.1 ", 9);
	assert_non_null(end);
	(void)snprintf(length, sizeof(length), "\r\nContent-Length: %zu\r\n", strlen(end + 4));
	assert_non_null(strstr(text, length));
	assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
	assert_non_null(strstr(text, "\r\nX-Millibox-Denied: "));
}

static void every_reason_has_an_answer(void **state)
{
	struct target target;
	char detail[EGRESS_RULE_LEN];

	(void)state;
	memset(detail, 'd', sizeof(detail) - 1);
	detail[sizeof(detail) - 1] = '\0';
	for (int reason = 0; reason < EGRESS_REASON_COUNT; reason++) {
		target = (struct target){.port = 443};
		check_answer((enum egress_reason)reason, &target, "");
		target = (struct target){.host = "example.com", .port = 443};
		check_answer((enum egress_reason)reason, &target, "GET example.com/a");
		memset(target.host, 'h', sizeof(target.host) - 1);
		check_answer((enum egress_reason)reason, &target, detail);
		assert_true(answer_socks((enum egress_reason)reason) != SOCKS_OK);
	}
}

static void an_answer_names_host_and_reason(void **state)
{
	const struct target target = {.host = "example.com", .port = 443};
	char text[ANSWER_MAX];

	(void)state;
	(void)answer_http(EGRESS_NO_HOST, &target, "", text);
	assert_memory_equal(text, "HTTP/1.1 403 example.com is not on the allowlist\r\n", 50);
	(void)answer_http(EGRESS_ADDRESS, &target, "10.0.0.1: private", text);
	assert_non_null(strstr(text, "10.0.0.1: private"));
	(void)answer_http(EGRESS_UNRESOLVED, &target, "", text);
	assert_memory_equal(text, "HTTP/1.1 502 ", 13);
	(void)answer_http(EGRESS_BAD_REQUEST, &target, "", text);
	assert_memory_equal(text, "HTTP/1.1 400 ", 13);
	assert_int_equal(answer_socks(EGRESS_NO_HOST), SOCKS_DENIED);
	assert_int_equal(answer_socks(EGRESS_UNREACHABLE), SOCKS_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_an_answer),
		cmocka_unit_test(an_answer_names_host_and_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
