/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/target.h"
#include "text.h"
#include "unit.h"

#include "base/str.h"
#include <arpa/inet.h>

#define LABEL63 "a23456789-123456789-123456789-123456789-123456789-123456789-123"
#define LABEL61 "a23456789-123456789-123456789-123456789-123456789-123456789-1"
#define NAME253 LABEL63 "." LABEL63 "." LABEL63 "." LABEL61

static int parse(const struct text *text, uint16_t port, struct target *ret, struct error *err)
{
	char *exact = text_exact(text->data, text->len);
	int r;

	error_clear(err);
	memset(ret, 0x5a, sizeof(*ret));
	r = target_parse(exact, text->len, port, ret, err);
	free(exact);
	return r;
}

static void names_and_addresses_are_parsed_into_one_form(void **state)
{
	static const struct {
		struct text text;
		const char *host;
		uint16_t port;
		const char *address; /* NULL: a name */
	} good[] = {
		{TEXT("example.com"), "example.com", 443, NULL},
		{TEXT("example.com:80"), "example.com", 80, NULL},
		{TEXT("Example.COM.:65535"), "example.com", 65535, NULL},
		{TEXT("localhost"), "localhost", 443, NULL},
		{TEXT("_dmarc.a-b.x1"), "_dmarc.a-b.x1", 443, NULL},
		{TEXT("1.2.3.4.example"), "1.2.3.4.example", 443, NULL},
		{TEXT("0x7f.example"), "0x7f.example", 443, NULL},
		{TEXT("123abc"), "123abc", 443, NULL},
		{TEXT("xn--bcher-kva.example"), "xn--bcher-kva.example", 443, NULL},
		{TEXT(LABEL63 ".x"), LABEL63 ".x", 443, NULL},
		{TEXT(NAME253), NAME253, 443, NULL},
		{TEXT(NAME253 ".:1"), NAME253, 1, NULL},
		{TEXT("127.0.0.1:8080"), "127.0.0.1", 8080, "::ffff:127.0.0.1"},
		{TEXT("0.0.0.0"), "0.0.0.0", 443, "::ffff:0.0.0.0"},
		{TEXT("255.255.255.255"), "255.255.255.255", 443, "::ffff:255.255.255.255"},
		{TEXT("[::1]"), "::1", 443, "::1"},
		{TEXT("[2001:DB8:0:0:0:0:0:1]:22"), "2001:db8::1", 22, "2001:db8::1"},
		{TEXT("[::127.0.0.1]"), "::127.0.0.1", 443, "::127.0.0.1"},
		{TEXT("[64:ff9b::10.0.0.1]"), "64:ff9b::a00:1", 443, "64:ff9b::a00:1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct target t, again;
		struct error err = {0};
		struct in6_addr a = {0};
		char text[TARGET_TEXT_LEN];

		assert_int_equal(parse(&good[i].text, 443, &t, &err), 0);
		assert_string_equal(t.host, good[i].host);
		assert_int_equal(t.port, good[i].port);
		assert_int_equal(t.is_address, good[i].address != NULL);
		if (good[i].address)
			assert_int_equal(inet_pton(AF_INET6, good[i].address, &a), 1);
		assert_memory_equal(&t.address, &a, sizeof(a));
		target_format(&t, 443, text);
		assert_int_equal(target_parse(text, strlen(text), 443, &again, &err), 0);
		assert_true(target_equal(&t, &again));
		assert_memory_equal(&t.address, &again.address, sizeof(a));
	}
}

static void other_forms_are_refused(void **state)
{
	static const struct text bad[] = {
		/* Addresses that resolvers read. */
		TEXT("2130706433"),
		TEXT("017700000001"),
		TEXT("0x7f000001"),
		TEXT("0X7F000001"),
		TEXT("127.1"),
		TEXT("127.0.1"),
		TEXT("0177.0.0.1"),
		TEXT("127.0.0.01"),
		TEXT("0x7f.0.0.1"),
		TEXT("0x7f.0.0.0x1"),
		TEXT("127.0.0.0x"),
		TEXT("127.0.0.256"),
		TEXT("127.0.0.1."),
		TEXT("1.2.3.4.5"),
		TEXT("a.1"),
		TEXT("a.1."),
		TEXT("0"),
		TEXT("+127.0.0.1"),
		/* IPv6. */
		TEXT("::1"),
		TEXT("::1:80"),
		TEXT("fe80::1"),
		TEXT("[::ffff:127.0.0.1]"),
		TEXT("[::ffff:7f00:1]"),
		TEXT("[0:0:0:0:0:ffff:127.0.0.1]"),
		TEXT("[fe80::1%eth0]"),
		TEXT("[fe80::1%25eth0]"),
		TEXT("[::1"),
		TEXT("::1]"),
		TEXT("[::1]80"),
		TEXT("[[::1]]"),
		TEXT("[::1]]"),
		TEXT("[]"),
		TEXT("[]:80"),
		TEXT("[127.0.0.1]"),
		TEXT("[example.com]"),
		TEXT("[::1].example.com"),
		TEXT("[::1\0]"),
		TEXT("[v1.x]"),
		TEXT("[::127.0.0.01]"),
		TEXT("[1:2:3:4:5:6:7:8:9]"),
		TEXT("[12345::]"),
		/* Other bytes. */
		TEXT("user@example.com"),
		TEXT("user:pass@example.com"),
		TEXT("example.com@127.0.0.1"),
		TEXT("example%2ecom"),
		TEXT("%31%32%37.0.0.1"),
		TEXT("example.com%00.evil.test"),
		TEXT("example.com\0.evil.test"),
		TEXT("example.com\0"),
		TEXT("example.com/x"),
		TEXT("example.com?x"),
		TEXT("example.com#x"),
		TEXT("example.com\\x"),
		TEXT(" example.com"),
		TEXT("example.com "),
		TEXT("exa mple.com"),
		TEXT("example.com\r\n"),
		TEXT("example.com\n:80"),
		TEXT("*.example.com"),
		TEXT("ex\xc3\xa4mple.com"),
		TEXT("\xef\xbd\x85xample.com"), /* full-width e */
		TEXT("example\xe3\x80\x82"
	             "com"),                                        /* ideographic full stop */
		TEXT("\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1"), /* circled digits */
		TEXT("example.com\xff"),
		/* Labels. */
		TEXT(""),
		TEXT("."),
		TEXT(".."),
		TEXT("example.com.."),
		TEXT(".example.com"),
		TEXT("example..com"),
		TEXT("-example.com"),
		TEXT("example-.com"),
		TEXT("example.-"),
		TEXT(LABEL63 "4.x"),
		TEXT("x." LABEL63 "4"),
		TEXT(NAME253 "2"),
		TEXT(NAME253 "2."),
		TEXT(NAME253 "." NAME253),
		/* Ports. */
		TEXT(":80"),
		TEXT("x:"),
		TEXT("x:0"),
		TEXT("x:080"),
		TEXT("x:65536"),
		TEXT("x:4294967376"),
		TEXT("x:18446744073709551696"),
		TEXT("x:+80"),
		TEXT("x:-1"),
		TEXT("x: 80"),
		TEXT("x:80 "),
		TEXT("x:0x50"),
		TEXT("x:80:80"),
		TEXT("x:80@y"),
		TEXT("[::1]:"),
		TEXT("[::1]:0"),
		TEXT("[::1]::80"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct target t, untouched;
		struct error err = {0};

		memset(&untouched, 0x5a, sizeof(untouched));
		if (parse(&bad[i], 443, &t, &err) != -1)
			fail_msg("accepted: %s", bad[i].data);
		assert_int_equal(err.code, ERR_INVALID);
		assert_true(err.msg[0] != '\0');
		assert_memory_equal(&t, &untouched, sizeof(t));
	}
}

static void port_may_be_required(void **state)
{
	static const struct text without[] = {TEXT("example.com"), TEXT("[::1]"), TEXT("1.2.3.4")};
	struct target t;
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(without); i++) {
		assert_int_equal(parse(&without[i], 0, &t, &err), -1);
		assert_string_equal(err.msg, "the port is missing");
	}
	assert_int_equal(parse(&(struct text)TEXT("example.com:22"), 0, &t, &err), 0);
	assert_int_equal(t.port, 22);
}

static void every_single_byte_outside_of_names_is_refused(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		char text[] = {'a', (char)c, 'b'};
		bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		               (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
		struct target t;
		struct error err = {0};

		assert_int_equal(target_parse_host(text, sizeof(text), false, &t, &err),
		                 allowed ? 0 : -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_addresses_are_parsed_into_one_form),
		cmocka_unit_test(other_forms_are_refused),
		cmocka_unit_test(port_may_be_required),
		cmocka_unit_test(every_single_byte_outside_of_names_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
