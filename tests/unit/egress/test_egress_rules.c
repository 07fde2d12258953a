/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/rules.h"
#include "unit.h"

#include "base/str.h"
#include "egress/address.h"
#include <string.h>

static struct rules *parse_one(const char *text, struct error *err)
{
	error_clear(err);
	return rules_parse(&text, 1, err);
}

static struct target target_of(const char *text)
{
	struct target t;
	struct error err = {0};

	if (target_parse(text, strlen(text), 443, &t, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return t;
}

static void rule_decides_by_host_and_port(void **state)
{
	static const struct {
		const char *rule, *target;
		enum rules_verdict verdict;
	} rows[] = {
		{"example.com", "example.com", RULES_ALLOWED},
		{"example.com", "EXAMPLE.com.:80", RULES_ALLOWED},
		{"Example.COM.", "example.com:443", RULES_ALLOWED},
		{"example.com", "example.com:8443", RULES_PORT},
		{"example.com", "www.example.com", RULES_NO_HOST},
		{"example.com", "notexample.com", RULES_NO_HOST},
		{"example.com", "example.com.evil.test", RULES_NO_HOST},
		{"example.com", "example.co", RULES_NO_HOST},
		{"example.com", "com", RULES_NO_HOST},
		{"*.example.com", "www.example.com", RULES_ALLOWED},
		{"*.example.com", "a.b.example.com", RULES_ALLOWED},
		{"*.example.com", "example.com", RULES_NO_HOST},
		{"*.example.com", "com", RULES_NO_HOST},
		{"*.example.com", "notexample.com", RULES_NO_HOST},
		{"*.example.com", "x.notexample.com", RULES_NO_HOST},
		{"*.example.com", "www.example.com.evil.test", RULES_NO_HOST},
		{"*.example.com:8080", "www.example.com:8080", RULES_ALLOWED},
		{"*.example.com:8080", "www.example.com:80", RULES_PORT},
		{"*.com", "example.com", RULES_ALLOWED},
		{"api.test:8443", "api.test:8443", RULES_ALLOWED},
		{"api.test:8443", "api.test:443", RULES_PORT},
		{"api.test:1,65535,7", "api.test:65535", RULES_ALLOWED},
		{"api.test:1,65535,7", "api.test:7", RULES_ALLOWED},
		{"api.test:1,65535,7", "api.test:8", RULES_PORT},
		{"example.com", "127.0.0.1", RULES_ADDRESS},
		{"*.0.0.x", "127.0.0.1", RULES_ADDRESS},
		{"10.0.0.0/8", "10.1.2.3", RULES_ALLOWED},
		{"10.0.0.0/8", "11.1.2.3", RULES_ADDRESS},
		{"10.0.0.0/8:5432", "10.1.2.3:5432", RULES_ALLOWED},
		{"10.0.0.0/8:5432", "10.1.2.3", RULES_PORT},
		{"10.0.0.0/8", "example.com", RULES_NO_HOST},
		{"10.1.2.3:22", "10.1.2.3:22", RULES_ALLOWED},
		{"10.1.2.3", "10.1.2.4", RULES_ADDRESS},
		{"0.0.0.0/0", "8.8.8.8", RULES_ALLOWED},
		{"0.0.0.0/0", "[2001:200::1]", RULES_ADDRESS},
		{"[fd00::/8]", "[fd12::1]", RULES_ALLOWED},
		{"[fd00::/8]:22,443", "[fd12::1]:22", RULES_ALLOWED},
		{"[fd00::/8]", "[fe00::1]", RULES_ADDRESS},
		{"[::1]", "[::1]", RULES_ALLOWED},
		{"[::/0]", "127.0.0.1", RULES_ADDRESS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = {0};
		cleanup_rules struct rules *r = parse_one(rows[i].rule, &err);
		struct target t = target_of(rows[i].target);
		bool near = rows[i].verdict == RULES_ALLOWED || rows[i].verdict == RULES_PORT;
		const char *rule = "untouched";

		if (!r)
			fail_msg("%s", err.msg);
		/* A tunnel and plain HTTP. */
		for (int tunnel = 0; tunnel < 2; tunnel++) {
			enum rules_verdict v =
				rules_match(r, &t, tunnel ? NULL : "GET", "/../x", 5, &rule);

			if (v != rows[i].verdict)
				fail_msg("%s and %s: %d", rows[i].rule, rows[i].target, v);
			if (near)
				assert_string_equal(rule, rows[i].rule);
			else
				assert_null(rule);
		}
	}
}

static void rule_decides_by_method_and_path(void **state)
{
	static const struct {
		const char *rule, *method, *path;
		enum rules_verdict verdict;
	} rows[] = {
		{"GET x.test", "GET", "/a", RULES_ALLOWED},
		{"GET x.test", "POST", "/a", RULES_METHOD},
		{"GET x.test", "GE", "/a", RULES_METHOD},
		{"GET x.test", "GETS", "/a", RULES_METHOD},
		{"GET,HEAD,M-SEARCH x.test", "HEAD", "/a", RULES_ALLOWED},
		{"GET,HEAD,M-SEARCH x.test", "M-SEARCH", "/a", RULES_ALLOWED},
		{"GET,HEAD,M-SEARCH x.test", "GET,HEAD", "/a", RULES_METHOD},
		{"GET x.test", NULL, NULL, RULES_TUNNEL},
		{"x.test/a", NULL, NULL, RULES_TUNNEL},
		{"x.test/a", "GET", "/a", RULES_ALLOWED},
		{"x.test/a", "GET", "/a?b=/../c", RULES_ALLOWED},
		{"x.test/a", "GET", "/a/", RULES_PATH},
		{"x.test/a", "GET", "/ab", RULES_PATH},
		{"x.test/a", "GET", "/A", RULES_PATH},
		{"x.test/a", "GET", "/", RULES_PATH},
		{"x.test/a", "GET", "", RULES_PATH},
		{"x.test/*", "GET", "/", RULES_ALLOWED},
		{"x.test/*", "GET", "*", RULES_PATH},
		{"x.test/a/*", "GET", "/a/", RULES_ALLOWED},
		{"x.test/a/*", "GET", "/a/b/c", RULES_ALLOWED},
		{"x.test/a/*", "GET", "/a/b/?x", RULES_ALLOWED},
		{"x.test/a/*", "GET", "/a", RULES_PATH},
		{"x.test/a/*", "GET", "/ab", RULES_PATH},
		{"x.test/a/*", "GET", "/b/a/", RULES_PATH},
		{"x.test/a*", "GET", "/ab", RULES_ALLOWED},
		{"GET x.test:80,443/a/*", "GET", "/a/b", RULES_ALLOWED},
		{"GET x.test:80,443/a/*", "POST", "/a/b", RULES_METHOD},
		{"GET x.test:80,443/a/*", "GET", "/b", RULES_PATH},
		{"GET *.test/a/*", "GET", "/a/b", RULES_ALLOWED},
		/* Names that servers agree on. */
		{"x.test/a/*", "GET", "/a/lib%2b%2b_1.2~rc;x=y/.hidden/...", RULES_ALLOWED},
		{"x.test/a/*", "GET", "/a/%c3%a4", RULES_ALLOWED},
		/* Names that lead elsewhere on some server. */
		{"x.test/a/*", "GET", "/a/../b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..", RULES_PATH},
		{"x.test/a/*", "GET", "/a/./b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/.", RULES_PATH},
		{"x.test/a/*", "GET", "/a//b", RULES_PATH},
		{"x.test/a/*", "GET", "//a/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/b//", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%2e%2e/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/.%2E/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/b%2fc", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..%2Fb", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..%5cb", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..\\b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%252e%252e/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..;/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..;x=y/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..%3b/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/;x/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/b%00", RULES_PATH},
		{"x.test/a/*", "GET", "/a/b%0a", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%c0%ae%c0%ae/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%e0%80%af/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%f0%80%80%af", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%c3", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%c3/%a4", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%c3%", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%c3x%a4", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%a4", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%ff", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%ed%a0%80", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%ae%ae/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%e2%82%ac%20%f0%9f%98%80.txt", RULES_ALLOWED},
		{"x.test/a/*", "GET", "/a/%", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%4", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%4/b", RULES_PATH},
		{"x.test/a/*", "GET", "/a/%u002e", RULES_PATH},
		{"x.test/a/*", "GET", "/a/..?b", RULES_PATH},
	};
	struct target t = target_of("x.test:80");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *path = rows[i].path, *rule = NULL;
		struct error err = {0};
		cleanup_rules struct rules *r = parse_one(rows[i].rule, &err);
		enum rules_verdict v;

		if (!r)
			fail_msg("%s", err.msg);
		v = rules_match(r, &t, rows[i].method, path, path ? strlen(path) : 0, &rule);
		if (v != rows[i].verdict)
			fail_msg("%s and %s %s: %d", rows[i].rule, rows[i].method, path, v);
		assert_string_equal(rule, rows[i].rule);
	}
}

static void rules_with_a_method_or_path_look_inside(void **state)
{
	static const struct {
		const char *rule, *target;
		bool looks;
	} rows[] = {
		{"x.test", "x.test:80", false},
		{"GET x.test", "x.test:80", true},
		{"x.test/a/*", "x.test:80", true},
		{"x.test:80", "x.test:81", true}, /* refused anyway */
		{"10.0.0.0/8:80", "10.1.2.3:80", false},
	};
	const char *both[] = {"GET x.test/a/*", "x.test"};
	struct error err = {0};
	struct target t = target_of("x.test:80");
	struct rules *rules;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		t = target_of(rows[i].target);
		rules = parse_one(rows[i].rule, &err);
		assert_non_null(rules);
		assert_int_equal(rules_look_inside(rules, &t), rows[i].looks);
		rules_free(rules);
	}
	/* Another rule allows everything there. */
	t = target_of("x.test:80");
	rules = rules_parse(both, 2, &err);
	assert_false(rules_look_inside(rules, &t));
	rules_free(rules);
}

static void malformed_rules_are_refused_by_name(void **state)
{
	static const struct {
		const char *rule, *why;
	} rows[] = {
		{"", "empty"},
		{" ", "method"},
		{" example.com", "method"},
		{"example.com ", "method"},
		{"GET  example.com", "character"},
		{"GET example.com x", "character"},
		{"get example.com", "upper-case"},
		{"GET, example.com", "empty"},
		{",GET example.com", "empty"},
		{"GET,,PUT example.com", "empty"},
		{"ABCDEFGHIJKLMNOPQRSTU example.com", "20"},
		{"GET,CONNECT example.com", "CONNECT"},
		{"GET ", "empty"},
		{"*", "character"},
		{"*.", "empty"},
		{"*.*.example.com", "character"},
		{"www.*.com", "character"},
		{"*example.com", "character"},
		{"**.example.com", "character"},
		{"*.127.0.0.1", "names below"},
		{"example..com", "empty label"},
		{"http://example.com", "scheme"},
		{"GET https://example.com/a", "scheme"},
		{"example.com://", "scheme"},
		{"user@example.com", "character"},
		{"ex\xc3\xa4mple.com", "ASCII"},
		{"example.com\n", "ASCII"},
		{"example.com:", "port"},
		{"example.com:0", "port"},
		{"example.com:65536", "port"},
		{"example.com:80,", "port"},
		{"example.com:80-90", "port"},
		{"example.com:*", "port"},
		{"example.com:80:90", "port"},
		{"example.com:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "16 ports"},
		{"example.com/a?b", "query"},
		{"example.com/a#b", "fragment"},
		{"example.com/a*b", "asterisk"},
		{"example.com/a/**", "asterisk"},
		{"example.com/a/../b", "segment"},
		{"example.com//a", "segment"},
		{"example.com/a%2fb", "escape"},
		{"example.com/a\\b", "backslash"},
		{"2130706433", "address"},
		{"127.1", "address"},
		{"0177.0.0.1", "address"},
		{"0x7f000001", "notation"},
		{"10.0.0.1/8", "beyond"},
		{"10.0.0.0/33", "32"},
		{"10.0.0.0/a", "32"},
		{"10.0.0.0/8/x", "methods and no path"},
		{"10.0.0.1:80/x", "methods and no path"},
		{"GET 10.0.0.1", "methods and no path"},
		{"fd00::1", "port"},
		{"[fd00::1", "bracket"},
		{"[fd00::1]x", "behind"},
		{"[fd00::]/8", "methods and no path"},
		{"[fd00::1/8]", "beyond"},
		{"[fd00::/129]", "128"},
		{"[10.0.0.0/8]", "IPv6"},
		{"[]", "IPv6"},
		{"[::ffff:10.0.0.0/104]", "mapped"},
		{"[fe80::1%eth0]", "address"},
		{"169.254.169.254", "metadata"},
		{"169.254.0.0/16", "link-local"},
		{"224.0.0.0/4", "multicast"},
		{"0.0.0.0", "unspecified"},
		{"[64:ff9b::/96]", "NAT64"},
		{"[2002::/16]", "6to4"},
		{"[::7f00:1]", "IPv4-compatible"},
	};
	char text[RULES_TEXT_MAX + 2];
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (parse_one(rows[i].rule, &err))
			fail_msg("accepted: %s", rows[i].rule);
		assert_int_equal(err.code, ERR_INVALID);
		if (!strstr(err.msg, rows[i].why))
			fail_msg("%s", err.msg);
		assert_true(str_equal(rows[i].why, "ASCII") || strstr(err.msg, rows[i].rule));
	}
	memset(text, 'x', sizeof(text));
	memcpy(text, "x/", 2);
	text[RULES_TEXT_MAX + 1] = '\0';
	assert_null(parse_one(text, &err));
	text[RULES_TEXT_MAX] = '\0';
	rules_free(parse_one(text, &err));
	assert_false(error_is_set(&err));
}

static void nearest_of_several_rules_decides(void **state)
{
	static const char *const texts[] = {
		"*.test:8443",         "x.test:22",       "GET x.test:80", "HEAD x.test/a",
		"PUT,GET x.test:80/b", "x.test:443,9000", "10.0.0.0/8:80", "x.test:9001",
	};
	static const struct {
		const char *target, *method, *path;
		enum rules_verdict verdict;
		int rule; /* -1: none */
	} rows[] = {
		{"x.test:8443", NULL, "", RULES_ALLOWED, 0},
		{"x.test:25", NULL, "", RULES_PORT, 0},
		{"x.test:22", NULL, "", RULES_ALLOWED, 1},
		{"x.test:80", NULL, "", RULES_TUNNEL, 2},
		{"x.test:80", "GET", "/c", RULES_ALLOWED, 2},
		{"x.test:80", "HEAD", "/c", RULES_PATH, 3},
		{"x.test:80", "PUT", "/b", RULES_ALLOWED, 4},
		{"x.test:80", "POST", "/b", RULES_METHOD, 2},
		{"x.test:443", NULL, "", RULES_ALLOWED, 5},
		{"y.test:443", NULL, "", RULES_PORT, 0},
		{"test:443", NULL, "", RULES_NO_HOST, -1},
		{"10.0.0.1:80", NULL, "", RULES_ALLOWED, 6},
		{"10.0.0.1:81", NULL, "", RULES_PORT, 6},
		{"9.0.0.1:80", NULL, "", RULES_ADDRESS, -1},
	};
	struct error err = {0};
	cleanup_rules struct rules *r = rules_parse(texts, ARRAY_SIZE(texts), &err);

	(void)state;
	assert_non_null(r);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct target t = target_of(rows[i].target);
		const char *rule = "untouched", *path = rows[i].path;

		assert_int_equal(rules_match(r, &t, rows[i].method, path, strlen(path), &rule),
		                 rows[i].verdict);
		if (rows[i].rule < 0)
			assert_null(rule);
		else
			assert_string_equal(rule, texts[rows[i].rule]);
	}
}

static void without_rules_nothing_is_allowed(void **state)
{
	struct error err = {0};
	cleanup_rules struct rules *r = rules_parse(NULL, 0, &err);
	struct target name = target_of("example.com"), address = target_of("8.8.8.8");
	const char *rule = "untouched";

	(void)state;
	assert_non_null(r);
	assert_int_equal(rules_match(r, &name, NULL, NULL, 0, &rule), RULES_NO_HOST);
	assert_int_equal(rules_match(r, &address, NULL, NULL, 0, &rule), RULES_ADDRESS);
	assert_null(rule);
	assert_false(rules_allow_address(r, &address.address, 443, false));
	rules_free(NULL);
}

static void rules_have_a_maximum(void **state)
{
	static const char *texts[RULES_MAX + 1];
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		texts[i] = "example.com";
	rules_free(rules_parse(texts, RULES_MAX, &err));
	assert_false(error_is_set(&err));
	assert_null(rules_parse(texts, RULES_MAX + 1, &err));
	assert_non_null(strstr(err.msg, "1024"));
}

static void addresses_that_are_not_public_need_a_rule_of_their_own(void **state)
{
	static const char *const texts[] = {
		"pypi.corp",      "10.1.0.0/16", "127.0.0.1:8080",
		"[fd00::/8]:443", "0.0.0.0/0",   "[::/0]",
	};
	static const struct {
		const char *target;
		bool allowed;
	} rows[] = {
		{"10.1.2.3:443", true},
		{"10.1.2.3:22", false},
		{"10.2.2.3:443", false},
		{"127.0.0.1:8080", true},
		{"127.0.0.1:443", false},
		{"127.0.0.2:8080", false},
		{"192.168.0.1:443", false},
		{"169.254.169.254:80", false},
		{"[fd12::1]:443", true},
		{"[fd12::1]:80", false},
		{"[fd00:ec2::254]:443", false},
		{"[fe80::1]:443", false},
		{"[64:ff9b::a01:203]:443", false},
	};
	struct error err = {0};
	cleanup_rules struct rules *r = rules_parse(texts, ARRAY_SIZE(texts), &err);

	(void)state;
	assert_non_null(r);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct target t = target_of(rows[i].target);

		assert_non_null(address_refusal(&t.address));
		if (rules_allow_address(r, &t.address, t.port, false) != rows[i].allowed)
			fail_msg("%s", rows[i].target);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_decides_by_host_and_port),
		cmocka_unit_test(rules_with_a_method_or_path_look_inside),
		cmocka_unit_test(rule_decides_by_method_and_path),
		cmocka_unit_test(malformed_rules_are_refused_by_name),
		cmocka_unit_test(nearest_of_several_rules_decides),
		cmocka_unit_test(without_rules_nothing_is_allowed),
		cmocka_unit_test(rules_have_a_maximum),
		cmocka_unit_test(addresses_that_are_not_public_need_a_rule_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
