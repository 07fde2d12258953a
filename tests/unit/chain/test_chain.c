/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "chain/chain.h"

#define RECORDS 5

static struct chain_head make(struct buf *b, size_t count)
{
	struct chain_head head = {0};
	char members[64];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(members, sizeof(members), "\"action\":\"a%zu\",\"n\":%zu", i, i);
		assert_int_equal(chain_add(&head, members, strlen(members), b), 0);
	}
	return head;
}

static struct chain_verdict verify(const char *data, size_t len, uint64_t watch)
{
	cleanup_close int fd = fd_memfd("chain", 0);
	struct chain_verdict v = {.watch_seq = {watch}};

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
	assert_int_equal(chain_verify_fd(fd, &v), 0);
	return v;
}

static void written_records_are_complete(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	struct chain_head head = make(&b, RECORDS);
	struct chain_verdict v = verify(b.data, b.len, head.seq);

	(void)state;
	chain_verify_head(&head, &v);
	assert_int_equal(v.fault, CHAIN_FINE);
	assert_int_equal(v.records, RECORDS);
	assert_int_equal(v.first_seq, 1);
	assert_int_equal(v.head.seq, RECORDS);
	assert_memory_equal(v.head.hash, head.hash, CHAIN_HASH_LEN);
	assert_int_equal(v.good_bytes, b.len);
	assert_true(str_has_prefix(b.data, "{\"seq\":1,\"action\":\"a0\",\"n\":0,\"prev\":\"0000"));
}

/* Change every byte of the file in several ways: each change is detected. */
static void no_byte_can_be_changed(void **state)
{
	static const unsigned char changes[] = {0x01, 0x20, 0x80, '\n' ^ 'x'};
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	struct chain_head head = make(&b, RECORDS);

	(void)state;
	for (size_t i = 0; i < b.len; i++)
		for (size_t j = 0; j < ARRAY_SIZE(changes); j++) {
			struct chain_verdict v;

			b.data[i] = (char)(b.data[i] ^ changes[j]);
			v = verify(b.data, b.len, head.seq);
			chain_verify_head(&head, &v);
			if (v.fault == CHAIN_FINE)
				fail_msg("byte %zu with %#x is not missed", i, changes[j]);
			b.data[i] = (char)(b.data[i] ^ changes[j]);
		}
}

static void no_byte_can_be_taken_or_added(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	struct chain_head head = make(&b, RECORDS);

	(void)state;
	for (size_t i = 0; i < b.len; i++) {
		cleanup_buf struct buf other = BUF_INIT(1 << 20);
		struct chain_verdict v;

		assert_int_equal(buf_add(&other, b.data, i), 0);
		assert_int_equal(buf_add(&other, b.data + i + 1, b.len - i - 1), 0);
		v = verify(other.data, other.len, head.seq);
		chain_verify_head(&head, &v);
		assert_int_not_equal(v.fault, CHAIN_FINE);
		buf_reset(&other);
		assert_int_equal(buf_add(&other, b.data, i), 0);
		assert_int_equal(buf_add(&other, " ", 1), 0);
		assert_int_equal(buf_add(&other, b.data + i, b.len - i), 0);
		v = verify(other.data, other.len, head.seq);
		chain_verify_head(&head, &v);
		assert_int_not_equal(v.fault, CHAIN_FINE);
	}
}

/* Line number @n, from 0, with its end. */
static const char *line_at(const struct buf *b, size_t n, size_t *ret_len)
{
	const char *at = b->data;

	for (; n > 0; n--)
		at = strchr(at, '\n') + 1;
	*ret_len = (size_t)(strchr(at, '\n') + 1 - at);
	return at;
}

static struct chain_verdict verify_order(const struct buf *b, const char *order)
{
	cleanup_buf struct buf other = BUF_INIT(1 << 20);

	for (; *order; order++) {
		size_t len;
		const char *line = line_at(b, (size_t)(*order - '0'), &len);

		assert_int_equal(buf_add(&other, line, len), 0);
	}
	return verify(other.data ? other.data : "", other.len, RECORDS);
}

static void records_cannot_be_moved_doubled_or_left_out(void **state)
{
	static const struct {
		const char *order;
		enum chain_fault fault;
		unsigned line;
	} cases[] = {
		{"01234", CHAIN_FINE, 0},
		{"1234", CHAIN_FINE, 0}, /* a file may start anywhere: its first number is reported
	                                  */
		{"02134", CHAIN_BAD_SEQ, 2},
		{"0134", CHAIN_BAD_SEQ, 3},
		{"011234", CHAIN_BAD_SEQ, 3},
		{"43210", CHAIN_BAD_SEQ, 2},
	};
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	struct chain_head head = make(&b, RECORDS);

	(void)state;
	(void)head;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct chain_verdict v = verify_order(&b, cases[i].order);

		assert_int_equal(v.fault, cases[i].fault);
		assert_int_equal(v.bad_line, cases[i].line);
	}
	assert_int_equal(verify_order(&b, "1234").first_seq, 2);
}

static void a_record_of_another_chain_does_not_fit(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20), other = BUF_INIT(1 << 20);
	struct chain_head head = make(&b, 2), second = {0};
	struct chain_verdict v;

	(void)state;
	(void)head;
	assert_int_equal(chain_add(&second, "\"x\":1", 5, &other), 0);
	assert_int_equal(chain_add(&second, "\"x\":2", 5, &other), 0);
	buf_reset(&b);
	make(&b, 1);
	assert_int_equal(buf_add_str(&b, strchr(other.data, '\n') + 1), 0);
	v = verify(b.data, b.len, 0);
	assert_int_equal(v.fault, CHAIN_BAD_PREV);
	assert_int_equal(v.bad_line, 2);
}

static void missing_records_at_the_end_are_known_by_the_head(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	struct chain_head head = make(&b, RECORDS), other;
	struct chain_verdict v = verify_order(&b, "0123");

	(void)state;
	assert_int_equal(v.fault, CHAIN_FINE);
	chain_verify_head(&head, &v);
	assert_int_equal(v.fault, CHAIN_CUT);
	/* A log may be ahead of its head, by what was written when the writer died. */
	v = verify_order(&b, "01234");
	other = v.head;
	v = verify(b.data, b.len, 3);
	other = v.watched[0];
	chain_verify_head(&other, &v);
	assert_int_equal(v.fault, CHAIN_FINE);
	other.hash[0] ^= 1;
	chain_verify_head(&other, &v);
	assert_int_equal(v.fault, CHAIN_BAD_HEAD);
}

static void a_torn_last_line_is_distinguished(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	size_t last, whole;
	struct chain_verdict v;

	(void)state;
	make(&b, RECORDS);
	(void)line_at(&b, RECORDS - 1, &last);
	whole = b.len - last;
	for (size_t len = whole + 1; len < b.len; len++) {
		v = verify(b.data, len, 0);
		assert_int_equal(v.fault, CHAIN_TORN);
		assert_int_equal(v.bad_line, RECORDS);
		assert_int_equal(v.good_bytes, whole);
		assert_int_equal(v.records, RECORDS - 1);
	}
}

static void a_chain_continues_in_another_file(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	cleanup_close int first = fd_memfd("a", 0), second = fd_memfd("b", 0);
	struct chain_verdict v = {0};
	size_t len;
	const char *rest;

	(void)state;
	make(&b, RECORDS);
	rest = line_at(&b, 2, &len);
	assert_int_equal(fd_write_all(first, b.data, (size_t)(rest - b.data)), 0);
	assert_int_equal(fd_write_all(second, rest, b.len - (size_t)(rest - b.data)), 0);
	assert_int_equal(chain_verify_fd(first, &v), 0);
	assert_int_equal(chain_verify_fd(second, &v), 0);
	assert_int_equal(v.fault, CHAIN_FINE);
	assert_int_equal(v.records, RECORDS);
	/* The other way round is a fault. */
	v = (struct chain_verdict){0};
	assert_int_equal(chain_verify_fd(second, &v), 0);
	assert_int_equal(chain_verify_fd(first, &v), 0);
	assert_int_equal(v.fault, CHAIN_BAD_SEQ);
}

static void malformed_records_are_refused(void **state)
{
	static const char *const bad[] = {"",
	                                  "{}",
	                                  "null",
	                                  "{\"seq\":",
	                                  "{\"seq\":0,",
	                                  "{\"seq\":01,",
	                                  "{\"seq\":-1,",
	                                  "{\"seq\":99999999999999999999999999,",
	                                  "x",
	                                  " {\"seq\":1,"};
	struct chain_head head;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(chain_check(NULL, bad[i], strlen(bad[i]), &head), CHAIN_MALFORMED);
}

static void a_line_without_end_does_not_take_all_memory(void **state)
{
	size_t len = 4 * CHAIN_LINE_MAX;
	cleanup_free char *text = xmalloc(len);
	struct chain_verdict v;

	(void)state;
	memset(text, 'x', len);
	v = verify(text, len, 0);
	assert_int_equal(v.fault, CHAIN_MALFORMED);
	assert_int_equal(v.bad_line, 1);
}

static void a_record_that_is_too_long_is_not_added(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	cleanup_free char *text = xmalloc(CHAIN_LINE_MAX);
	struct chain_head head = {0};

	(void)state;
	memset(text, 'x', CHAIN_LINE_MAX);
	assert_int_equal(chain_add(&head, text, CHAIN_LINE_MAX, &b), -EMSGSIZE);
	b.max = 100;
	assert_int_equal(chain_add(&head, text, 90, &b), -ENOBUFS);
	assert_int_equal(head.seq, 0);
	assert_int_equal(b.len, 0);
}

static void heads_are_read_as_they_were_written(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1 << 20);
	struct chain_head head = make(&b, RECORDS), back;
	char text[CHAIN_HEAD_LEN + 1];

	(void)state;
	chain_head_print(&head, text);
	assert_int_equal(strlen(text), CHAIN_HEAD_LEN);
	assert_int_equal(chain_head_parse(text, CHAIN_HEAD_LEN, &back), 0);
	assert_int_equal(back.seq, head.seq);
	assert_memory_equal(back.hash, head.hash, CHAIN_HASH_LEN);
	assert_int_equal(chain_head_parse(text, CHAIN_HEAD_LEN - 1, &back), -EINVAL);
	text[30] = 'X';
	assert_int_equal(chain_head_parse(text, CHAIN_HEAD_LEN, &back), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_records_are_complete),
		cmocka_unit_test(no_byte_can_be_changed),
		cmocka_unit_test(no_byte_can_be_taken_or_added),
		cmocka_unit_test(records_cannot_be_moved_doubled_or_left_out),
		cmocka_unit_test(a_record_of_another_chain_does_not_fit),
		cmocka_unit_test(missing_records_at_the_end_are_known_by_the_head),
		cmocka_unit_test(a_torn_last_line_is_distinguished),
		cmocka_unit_test(a_chain_continues_in_another_file),
		cmocka_unit_test(malformed_records_are_refused),
		cmocka_unit_test(a_line_without_end_does_not_take_all_memory),
		cmocka_unit_test(a_record_that_is_too_long_is_not_added),
		cmocka_unit_test(heads_are_read_as_they_were_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
