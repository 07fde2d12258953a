/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/hello.h"
#include "text.h"
#include "unit.h"

#include "base/buf.h"

#define NAME "Example.com"

/* What differs from an ordinary ClientHello. */
struct hello_spec {
	const struct text *extensions; /* with their headers */
	size_t count;
	bool no_extensions; /* not even their length */
	size_t behind;      /* bytes behind the extensions */
	size_t record;      /* bytes of the message in one record; 0: all */
	int version, session_id, suites, compression; /* 0: as usual */
};

static const struct text versions_extension = TEXT("\0\x2b\0\3\2\3\4");
static const struct text name_extension = TEXT("\0\0\0\x10\0\xe\0\0\xb" NAME);
static const struct text ech_extension = TEXT("\xfe\x0d\0\4\0\0\1\0");

static void add(struct buf *b, const void *data, size_t len)
{
	assert_int_equal(buf_add(b, data, len), 0);
}

static void add_number(struct buf *b, size_t value, size_t bytes)
{
	while (bytes-- > 0) {
		unsigned char byte = (unsigned char)(value >> 8 * bytes);

		add(b, &byte, 1);
	}
}

static void add_zeros(struct buf *b, size_t len)
{
	while (len-- > 0)
		add_number(b, 0, 1);
}

static void make_message(struct buf *b, const struct hello_spec *spec)
{
	struct buf body = BUF_INIT(1 << 20);
	size_t extensions = 0;

	add_number(&body, spec->version ? (size_t)spec->version : 0x303, 2);
	add_zeros(&body, 32);
	add_number(&body, (size_t)spec->session_id, 1);
	add_zeros(&body, (size_t)spec->session_id);
	add_number(&body, spec->suites ? (size_t)spec->suites - 1 : 2, 2);
	add_zeros(&body, spec->suites ? (size_t)spec->suites - 1 : 2);
	add_number(&body, spec->compression ? (size_t)spec->compression - 1 : 1, 1);
	add_zeros(&body, spec->compression ? (size_t)spec->compression - 1 : 1);
	for (size_t i = 0; i < spec->count; i++)
		extensions += spec->extensions[i].len;
	if (!spec->no_extensions)
		add_number(&body, extensions, 2);
	for (size_t i = 0; i < spec->count; i++)
		add(&body, spec->extensions[i].data, spec->extensions[i].len);
	add_zeros(&body, spec->behind);
	add_number(b, 1, 1);
	add_number(b, body.len, 3);
	add(b, body.data, body.len);
	buf_done(&body);
}

static void add_records(struct buf *b, const char *data, size_t len, size_t record)
{
	while (len > 0) {
		size_t n = record && record < len ? record : len;

		add(b, "\x16\3\1", 3);
		add_number(b, n, 2);
		add(b, data, n);
		data += n;
		len -= n;
	}
}

static struct buf make(const struct hello_spec *spec)
{
	struct buf message = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);

	make_message(&message, spec);
	add_records(&b, message.data, message.len, spec->record);
	buf_done(&message);
	return b;
}

/* In a block of exactly this size; the name is written with HELLO_NAME only. */
static enum hello_result parse(const void *data, size_t len, char name[TARGET_HOST_LEN])
{
	char *exact = text_exact(data, len);
	enum hello_result r;

	memset(name, 'x', TARGET_HOST_LEN);
	r = hello_parse(exact, len, name);
	assert_true(r == HELLO_NAME || name[0] == 'x');
	free(exact);
	return r;
}

/* Every shorter input needs more, and what follows the ClientHello changes nothing. */
static void expect_at_end_only(const struct hello_spec *spec, enum hello_result expected)
{
	struct buf b = make(spec);
	char name[TARGET_HOST_LEN];

	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(parse(b.data, len, name), HELLO_MORE);
	assert_int_equal(parse(b.data, b.len, name), expected);
	if (expected == HELLO_NAME)
		assert_string_equal(name, "example.com");
	add(&b, "\x17\3\3 any bytes", 13);
	assert_int_equal(parse(b.data, b.len, name), expected);
	buf_done(&b);
}

static void name_is_found_however_the_bytes_are_cut(void **state)
{
	const struct text extensions[] = {versions_extension, name_extension, versions_extension};
	struct hello_spec spec = {.extensions = extensions, .count = 3};

	(void)state;
	for (spec.record = 0; spec.record < 100; spec.record++)
		expect_at_end_only(&spec, HELLO_NAME);
	spec.record = 0;
	spec.session_id = 32;
	expect_at_end_only(&spec, HELLO_NAME);
}

static void hello_without_a_name_is_said_so(void **state)
{
	(void)state;
	expect_at_end_only(&(struct hello_spec){.no_extensions = true}, HELLO_NO_NAME);
	expect_at_end_only(&(struct hello_spec){0}, HELLO_NO_NAME);
	expect_at_end_only(&(struct hello_spec){.extensions = &versions_extension, .count = 1},
	                   HELLO_NO_NAME);
}

static void encrypted_hello_is_said_so_with_and_without_a_name(void **state)
{
	static const struct text drafts[] = {
		TEXT("\xfe\x08\0\0"),
		TEXT("\xfe\x0d\0\0"),
		TEXT("\xff\xce\0\1x"),
	};
	const struct text before[] = {ech_extension, name_extension};
	const struct text after[] = {name_extension, ech_extension};

	(void)state;
	expect_at_end_only(&(struct hello_spec){.extensions = before, .count = 2}, HELLO_ENCRYPTED);
	expect_at_end_only(&(struct hello_spec){.extensions = after, .count = 2}, HELLO_ENCRYPTED);
	for (size_t i = 0; i < ARRAY_SIZE(drafts); i++)
		expect_at_end_only(&(struct hello_spec){.extensions = &drafts[i], .count = 1},
		                   HELLO_ENCRYPTED);
}

static void malformed_names_and_extensions_are_refused(void **state)
{
	static const struct text bad[] = {
		TEXT("\0\0\0\0"),                               /* empty extension */
		TEXT("\0\0\0\2\0\0"),                           /* empty list */
		TEXT("\0\0\0\5\0\3\0\0\0"),                     /* empty name */
		TEXT("\0\0\0\6\0\4\1\0\1x"),                    /* other type */
		TEXT("\0\0\0\6\0\4\0\0\2x"),                    /* name longer than the list */
		TEXT("\0\0\0\6\0\3\0\0\1x"),                    /* list shorter than the name */
		TEXT("\0\0\0\6\0\5\0\0\1x"),                    /* list longer than the extension */
		TEXT("\0\0\0\7\0\4\0\0\1xy"),                   /* bytes behind the list */
		TEXT("\0\0\0\7\0\5\0\0\1xy"),                   /* bytes behind the name */
		TEXT("\0\0\0\xa\0\x8\0\0\1x\0\0\1y"),           /* two names */
		TEXT("\0\0\0\6\0\4\0\0\1x\0\0\0\6\0\4\0\0\1x"), /* two extensions */
		TEXT("\0\0\0\7\0\5\0\0\2x."),
		TEXT("\0\0\0\x8\0\6\0\0\3::1"),
		TEXT("\0\0\0\xe\0\xc\0\0\x9"
	             "127.0.0.1"),
		TEXT("\0\0\0\xf\0\xd\0\0\xa"
	             "2130706433"),
		TEXT("\0\0\0\x8\0\6\0\0\3a\0b"),
		TEXT("\0\0\0\x8\0\6\0\0\3a:1"),
		TEXT("\0\0\0\x8\0\6\0\0\3a@b"),
		TEXT("\0\0\0\x8\0\6\0\0\3\xc3\xa4"
	             "a"),
		TEXT("\0"),
		TEXT("\0\1\0"),
		TEXT("\0\1\0\1"),
		TEXT("\0\1\0\0\0"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct text with_ech[] = {ech_extension, bad[i]};

		expect_at_end_only(&(struct hello_spec){.extensions = &bad[i], .count = 1},
		                   HELLO_MALFORMED);
		expect_at_end_only(&(struct hello_spec){.extensions = with_ech, .count = 2},
		                   HELLO_MALFORMED);
	}
}

static void malformed_hello_is_refused(void **state)
{
	static const struct hello_spec bad[] = {
		{.version = 0x203}, {.version = 0x403}, {.session_id = 33},
		{.suites = 1},      {.suites = 4},      {.compression = 1},
		{.behind = 1},      {.behind = 4},      {.no_extensions = true, .behind = 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_at_end_only(&bad[i], HELLO_MALFORMED);
}

static void other_first_bytes_are_judged_at_once(void **state)
{
	static const struct {
		struct text text;
		enum hello_result result;
	} rows[] = {
		{TEXT("GET / HTTP/1.1\r\n"), HELLO_NOT_TLS},
		{TEXT("SSH-2.0-x"), HELLO_NOT_TLS},
		{TEXT("\x80\x2e\1\3\1"), HELLO_NOT_TLS}, /* SSL 2 */
		{TEXT("\x17\3\3\0\1x"), HELLO_NOT_TLS},
		{TEXT("\x16\2"), HELLO_NOT_TLS},
		{TEXT("\x16\xfe\xff"), HELLO_NOT_TLS}, /* DTLS */
		{TEXT("\x16\3\5"), HELLO_NOT_TLS},
		{TEXT("\x16\3\1\0\0"), HELLO_MALFORMED},           /* empty record */
		{TEXT("\x16\3\1\x40\1"), HELLO_MALFORMED},         /* too long */
		{TEXT("\x16\3\1\0\4\2"), HELLO_MALFORMED},         /* ServerHello */
		{TEXT("\x16\3\1\0\4\1\0\x40\0"), HELLO_MALFORMED}, /* longer than HELLO_MAX */
		{TEXT("\x16\3\1\0\4\1\xff\xff\xff"), HELLO_MALFORMED},
		{TEXT("\x16\3\1\0\5\1\0\0\0"), HELLO_MALFORMED},     /* more in the same record */
		{TEXT("\x16\3\1\0\4\1\0\0\1\x17"), HELLO_MALFORMED}, /* other record in between */
		{TEXT("\x16\3\1\0\4\1\0\0\1\x16\2"), HELLO_MALFORMED},
		{TEXT("\x16\3\1\0\4\1\0\0\1\x16\3\1\0\0"), HELLO_MALFORMED},
		{TEXT("\x16\3\1\0\4\1\0\0\1\x16\3\1\0\2"), HELLO_MALFORMED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[TARGET_HOST_LEN];

		/* Once it is judged, the result stays. */
		for (size_t len = 0; len < rows[i].text.len; len++) {
			enum hello_result r = parse(rows[i].text.data, len, name);

			assert_true(r == HELLO_MORE || r == rows[i].result);
		}
		assert_int_equal(parse(rows[i].text.data, rows[i].text.len, name), rows[i].result);
	}
}

static void second_hello_in_the_same_record_is_refused(void **state)
{
	struct hello_spec spec = {.extensions = &name_extension, .count = 1};
	struct buf message = BUF_INIT(1 << 16), b = BUF_INIT(1 << 16);
	char name[TARGET_HOST_LEN];

	(void)state;
	make_message(&message, &spec);
	make_message(&message, &spec);
	add_records(&b, message.data, message.len, 0);
	assert_int_equal(parse(b.data, b.len, name), HELLO_MALFORMED);
	buf_done(&message);
	buf_done(&b);
}

static void hello_has_a_maximum(void **state)
{
	static char padding[HELLO_MAX] = "\0\x15";
	struct text extensions[] = {name_extension, {padding, 0}};
	struct hello_spec spec = {.extensions = extensions, .count = 2};
	struct buf empty = make(&(struct hello_spec){.extensions = extensions, .count = 1});
	size_t room = HELLO_MAX - empty.len;

	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		size_t len = room + extra;
		char name[TARGET_HOST_LEN];
		struct buf b;

		padding[2] = (char)((len - 4) >> 8);
		padding[3] = (char)(len - 4);
		extensions[1].len = len;
		b = make(&spec);
		assert_int_equal(b.len, HELLO_MAX + extra);
		assert_int_equal(parse(b.data, HELLO_MAX - 1, name), HELLO_MORE);
		assert_int_equal(parse(b.data, HELLO_MAX, name),
		                 extra ? HELLO_MALFORMED : HELLO_NAME);
		assert_int_equal(parse(b.data, b.len, name), extra ? HELLO_MALFORMED : HELLO_NAME);
		buf_done(&b);
	}
	buf_done(&empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_is_found_however_the_bytes_are_cut),
		cmocka_unit_test(hello_without_a_name_is_said_so),
		cmocka_unit_test(encrypted_hello_is_said_so_with_and_without_a_name),
		cmocka_unit_test(malformed_names_and_extensions_are_refused),
		cmocka_unit_test(malformed_hello_is_refused),
		cmocka_unit_test(other_first_bytes_are_judged_at_once),
		cmocka_unit_test(second_hello_in_the_same_record_is_refused),
		cmocka_unit_test(hello_has_a_maximum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
