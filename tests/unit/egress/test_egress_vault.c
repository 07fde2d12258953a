/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/vault.h"

#include <errno.h>
#include <string.h>

#include "text.h"
#include "unit.h"

#define VALUE "sk-1234567890"
#define MARK  "mbx-placeholder"

struct sample {
	enum egress_secret_mode mode;
	const char *header, *format, *placeholder, *value, *hosts[3];
};

static void add_text(struct buf *to, const char *text)
{
	assert_int_equal(buf_add(to, text, strlen(text) + 1), 0);
}

static void add_sample(struct buf *to, const struct sample *s)
{
	struct egress_secret head = {.mode = s->mode};

	while (head.host_count < 3 && s->hosts[head.host_count])
		head.host_count++;
	assert_int_equal(buf_add(to, &head, sizeof(head)), 0);
	add_text(to, "name");
	add_text(to, s->header);
	add_text(to, s->format);
	add_text(to, s->placeholder);
	add_text(to, s->value);
	for (uint32_t i = 0; i < head.host_count; i++)
		add_text(to, s->hosts[i]);
}

static struct vault *vault_of(const struct sample *samples, uint32_t count)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 16);
	struct error err = {0};
	struct vault *v;
	char *exact;

	for (uint32_t i = 0; i < count; i++)
		add_sample(&b, &samples[i]);
	exact = text_exact(b.data, b.len);
	v = vault_parse(exact, b.len, count, &err);
	if (!v)
		fail_msg("%s", err.msg);
	free(exact);
	return v;
}

static const struct sample bearer = {EGRESS_SECRET_HEADER,
                                     "Authorization",
                                     "Bearer {value}",
                                     MARK,
                                     VALUE,
                                     {"http://api.test:80", "https://api.test:443"}};
static const struct sample replaced = {EGRESS_SECRET_PLACEHOLDER, "X-Key", "{value}", MARK, VALUE,
                                       {"http://api.test:80"}};

/* Return: the request as the server gets it; owned. */
static char *rewritten(const struct vault *v, const char *request)
{
	struct buf out = BUF_INIT(1 << 16);
	struct error err = {0};
	struct head head;
	size_t len;

	if (head_parse(request, strlen(request), NULL, &head, &err) != 1)
		fail_msg("%s", err.msg);
	assert_int_equal(vault_write(v, &head, false, &out), 0);
	return buf_take(&out, &len);
}

static void expect(const struct sample *sample, const char *request, const char *wanted)
{
	struct vault *v = vault_of(sample, 1);
	char *got = rewritten(v, request);

	assert_string_equal(got, wanted);
	free(got);
	vault_free(v);
}

static void a_header_is_added_once(void **state)
{
	(void)state;
	expect(&bearer,
	       "GET http://api.test/a HTTP/1.1\r\nHost: api.test\r\nauthorization: mine\r\n"
	       "Accept-Encoding: gzip\r\nX: y\r\nAUTHORIZATION: again\r\n\r\n",
	       "GET /a HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\nX: y\r\n"
	       "Accept-Encoding: identity\r\nAuthorization: Bearer " VALUE "\r\n\r\n");
}

static void a_placeholder_is_replaced_in_its_header_only(void **state)
{
	(void)state;
	expect(&replaced,
	       "GET http://api.test/" MARK " HTTP/1.1\r\nHost: api.test\r\nx-key: a" MARK "b" MARK
	       "\r\nX-Other: " MARK "\r\nX-Key: mine\r\n\r\n",
	       "GET /" MARK " HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\nx-key: a" VALUE
	       "b" VALUE "\r\nX-Other: " MARK
	       "\r\nX-Key: mine\r\nAccept-Encoding: identity\r\n\r\n");
}

static void other_hosts_get_nothing(void **state)
{
	static const char *const requests[] = {
		"GET http://api.test:81/ HTTP/1.1\r\nHost: api.test:81\r\nX-Key: " MARK "\r\n\r\n",
		"GET http://xapi.test/ HTTP/1.1\r\nHost: xapi.test\r\nX-Key: " MARK "\r\n\r\n",
		"GET http://api.test.x/ HTTP/1.1\r\nHost: api.test.x\r\nX-Key: " MARK "\r\n\r\n",
		"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Key: " MARK "\r\n\r\n",
	};
	const struct sample both[] = {bearer, replaced};
	struct vault *v = vault_of(both, 2);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		char *got = rewritten(v, requests[i]);

		assert_null(strstr(got, VALUE));
		assert_non_null(strstr(got, "X-Key: " MARK));
		free(got);
	}
	vault_free(v);
}

static void tls_and_plain_requests_are_told_apart(void **state)
{
	static const struct sample only_tls = {EGRESS_SECRET_HEADER,    "A", "{value}", MARK, VALUE,
	                                       {"https://api.test:443"}};
	struct vault *v = vault_of(&only_tls, 1);
	struct target t = {.host = "api.test", .port = 443};

	(void)state;
	assert_true(vault_covers(v, &t, true));
	assert_false(vault_covers(v, &t, false));
	t.port = 80;
	assert_false(vault_covers(v, &t, true));
	assert_false(vault_covers(NULL, &t, true));
	vault_free(v);
}

static void malformed_records_are_refused(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 16);
	static const struct sample bad[] = {
		{EGRESS_SECRET_HEADER, "A", "no word", MARK, VALUE, {"http://api.test:80"}},
		{EGRESS_SECRET_HEADER, "A", "{value}", MARK, "short", {"http://api.test:80"}},
		{EGRESS_SECRET_HEADER, "A", "{value}", "", VALUE, {"http://api.test:80"}},
		{EGRESS_SECRET_HEADER, "", "{value}", MARK, VALUE, {"http://api.test:80"}},
		{EGRESS_SECRET_HEADER, "A", "{value}", MARK, VALUE, {"ftp://api.test:80"}},
		{EGRESS_SECRET_HEADER, "A", "{value}", MARK, VALUE, {"http://10.0.0.1:80"}},
		{EGRESS_SECRET_MODE_COUNT, "A", "{value}", MARK, VALUE, {"http://api.test:80"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = {0};

		buf_reset(&b);
		add_sample(&b, &bad[i]);
		assert_null(vault_parse(b.data, b.len, 1, &err));
		assert_null(strstr(err.msg, VALUE));
	}
	buf_reset(&b);
	add_sample(&b, &bearer);
	/* Each start of a record, and one with more behind it. */
	for (size_t len = 0; len < b.len; len++) {
		char *exact = text_exact(b.data, len);
		struct error err = {0};

		assert_null(vault_parse(exact, len, 1, &err));
		free(exact);
	}
	assert_null(vault_parse(b.data, b.len, 0, &(struct error){0}));
	assert_null(vault_parse(b.data, b.len, EGRESS_SECRETS_MAX + 1, &(struct error){0}));
}

/* Return: @data after it was fed in pieces of @step; owned. */
static char *scrubbed(const struct vault *v, const char *data, size_t step)
{
	const struct target t = {.host = "api.test", .port = 80};
	struct scrub *s = scrub_new(v, &t, false);
	struct buf out = BUF_INIT(1 << 16);
	size_t len = strlen(data);

	for (size_t at = 0; at < len; at += step)
		assert_int_equal(
			scrub_feed(s, data + at, len - at < step ? len - at : step, false, &out),
			0);
	assert_int_equal(scrub_feed(s, NULL, 0, true, &out), 0);
	scrub_free(s);
	return buf_take(&out, &len);
}

static void values_are_overwritten_in_answers(void **state)
{
	static const char answer[] = "a " VALUE " b sk-123 " VALUE VALUE " sk-12345678";
	static const char wanted[] =
		"a ************* b sk-123 ************************** sk-12345678";
	struct vault *v = vault_of(&bearer, 1);

	(void)state;
	for (size_t step = 1; step < sizeof(answer); step++) {
		char *got = scrubbed(v, answer, step);

		assert_string_equal(got, wanted);
		free(got);
	}
	vault_free(v);
}

/* One value contains the other, two overlap, one begins as another ends: nothing of them is left,
 * whatever their order. */
static void overlapping_values_are_overwritten(void **state)
{
	static const struct sample samples[] = {
		{EGRESS_SECRET_HEADER, "A", "{value}", MARK, "12345678", {"http://api.test:80"}},
		{EGRESS_SECRET_HEADER,
	         "B",
	         "{value}",
	         MARK,
	         "ab12345678yz",
	         {"http://api.test:80"}},
		{EGRESS_SECRET_HEADER, "C", "{value}", MARK, "5678wxyz", {"http://api.test:80"}},
		{EGRESS_SECRET_HEADER,
	         "D",
	         "{value}",
	         MARK,
	         "12345678wxyzabcd",
	         {"http://api.test:80"}},
	};
	static const char answer[] = "-ab12345678yz-12345678wxyz-12345678wxyzabcd-ab12345678wxyz-";
	static const char wanted[] = "-************-************-****************-ab************-";

	(void)state;
	for (uint32_t first = 0; first < ARRAY_SIZE(samples); first++) {
		struct sample turned[ARRAY_SIZE(samples)];
		struct vault *v;

		for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
			turned[i] = samples[(first + i) % ARRAY_SIZE(samples)];
		v = vault_of(turned, ARRAY_SIZE(turned));
		for (size_t step = 1; step < sizeof(answer); step++) {
			char *got = scrubbed(v, answer, step);

			assert_string_equal(got, wanted);
			free(got);
		}
		vault_free(v);
	}
}

/* Four placeholders may become 16 KiB; a head of nothing else would become megabytes. */
static void placeholders_are_bounded(void **state)
{
	static const char four[] = "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n"
				   "X-Key: " MARK MARK "\r\nX-Key: " MARK MARK "\r\n\r\n",
			  five[] = "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n"
				   "X-Key: " MARK MARK "\r\nX-Key: " MARK MARK MARK "\r\n\r\n";
	struct vault *v = vault_of(&replaced, 1);
	struct buf out = BUF_INIT(1 << 16);
	struct error err = {0};
	struct head head;

	(void)state;
	assert_int_equal(head_parse(four, strlen(four), NULL, &head, &err), 1);
	assert_int_equal(vault_write(v, &head, false, &out), 0);
	buf_reset(&out);
	assert_int_equal(head_parse(five, strlen(five), NULL, &head, &err), 1);
	assert_int_equal(vault_write(v, &head, false, &out), -E2BIG);
	assert_int_equal(out.len, 0);
	buf_done(&out);
	vault_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_added_once),
		cmocka_unit_test(a_placeholder_is_replaced_in_its_header_only),
		cmocka_unit_test(other_hosts_get_nothing),
		cmocka_unit_test(tls_and_plain_requests_are_told_apart),
		cmocka_unit_test(malformed_records_are_refused),
		cmocka_unit_test(values_are_overwritten_in_answers),
		cmocka_unit_test(overlapping_values_are_overwritten),
		cmocka_unit_test(placeholders_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
