/* SPDX-License-Identifier: Apache-2.0 */
#include "chain/chain.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"

#define SEQ_MARK       "{\"seq\":"
#define PREV_MARK      ",\"prev\":\""
#define HASH_MARK      "\",\"hash\":\""
#define END_MARK       "\"}"
#define SEQ_DIGITS_MAX 20
/* ,"prev":"…","hash":"…"} */
#define TAIL_LEN                                                                                   \
	(sizeof(PREV_MARK) - 1 + CHAIN_HEX_LEN + sizeof(HASH_MARK) - 1 + CHAIN_HEX_LEN +           \
	 sizeof(END_MARK) - 1)

static const char *const fault_texts[] = {
	[CHAIN_FINE] = "the log is intact",
	[CHAIN_MALFORMED] = "the line is not a record",
	[CHAIN_TORN] = "the last line is incomplete",
	[CHAIN_BAD_SEQ] =
		"its number is out of sequence: records are missing, duplicated or out of order",
	[CHAIN_BAD_PREV] = "the record before it was replaced",
	[CHAIN_BAD_HASH] = "the record was changed",
	[CHAIN_CUT] = "records are missing at the end",
	[CHAIN_BAD_HEAD] = "the stored head belongs to another log",
};
static_assert(ARRAY_SIZE(fault_texts) == CHAIN_FAULT_COUNT, "every fault has a text");

const char *chain_fault_text(enum chain_fault fault)
{
	return fault_texts[fault];
}

static void hash_of(const char *data, size_t len, uint8_t ret_hash[CHAIN_HASH_LEN])
{
	int r = crypto_generichash(ret_hash, CHAIN_HASH_LEN, (const unsigned char *)data, len, NULL,
	                           0);

	assert(r == 0); /* fails only for an invalid length */
	(void)r;
}

static void to_hex(const uint8_t hash[CHAIN_HASH_LEN], char ret_hex[CHAIN_HEX_LEN + 1])
{
	(void)sodium_bin2hex(ret_hex, CHAIN_HEX_LEN + 1, hash, CHAIN_HASH_LEN);
}

/* Lower case only: one spelling per hash. */
static int from_hex(const char *hex, uint8_t ret_hash[CHAIN_HASH_LEN])
{
	if (strspn(hex, "0123456789abcdef") < CHAIN_HEX_LEN ||
	    sodium_hex2bin(ret_hash, CHAIN_HASH_LEN, hex, CHAIN_HEX_LEN, NULL, NULL, NULL) < 0)
		return -EINVAL;
	return 0;
}

int chain_add(struct chain_head *head, const char *members, size_t len, struct buf *b)
{
	struct chain_head next = {.seq = head->seq + 1};
	char prev[CHAIN_HEX_LEN + 1], own[CHAIN_HEX_LEN + 1];
	size_t start = b->len;
	int r;

	if (len + TAIL_LEN + sizeof(SEQ_MARK) + SEQ_DIGITS_MAX > CHAIN_LINE_MAX)
		return -EMSGSIZE;
	to_hex(head->hash, prev);
	r = buf_addf(b, SEQ_MARK "%" PRIu64 ",%.*s" PREV_MARK "%s", next.seq, (int)len, members,
	             prev);
	if (r == 0)
		r = buf_add_str(b, "\"");
	if (r < 0) {
		b->len = start;
		return r;
	}
	hash_of(b->data + start, b->len - start, next.hash);
	to_hex(next.hash, own);
	r = buf_addf(b, ",\"hash\":\"%s\"}\n", own);
	if (r < 0) {
		b->len = start;
		return r;
	}
	*head = next;
	return 0;
}

static int read_seq(const char *line, size_t len, uint64_t *ret_seq)
{
	char digits[SEQ_DIGITS_MAX + 1];
	size_t start = sizeof(SEQ_MARK) - 1, n = 0;

	if (len < start || memcmp(line, SEQ_MARK, start) != 0)
		return -EINVAL;
	while (start + n < len && n < SEQ_DIGITS_MAX && line[start + n] >= '0' &&
	       line[start + n] <= '9') {
		digits[n] = line[start + n];
		n++;
	}
	digits[n] = '\0';
	if (n == 0 || digits[0] == '0' || start + n >= len || line[start + n] != ',')
		return -EINVAL;
	return parse_u64(digits, ret_seq);
}

static int read_tail(const char *line, size_t len, uint8_t ret_prev[CHAIN_HASH_LEN],
                     uint8_t ret_hash[CHAIN_HASH_LEN])
{
	const char *at;

	if (len < TAIL_LEN)
		return -EINVAL;
	at = line + len - TAIL_LEN;
	if (memcmp(at, PREV_MARK, sizeof(PREV_MARK) - 1) != 0)
		return -EINVAL;
	at += sizeof(PREV_MARK) - 1;
	if (from_hex(at, ret_prev) < 0)
		return -EINVAL;
	at += CHAIN_HEX_LEN;
	if (memcmp(at, HASH_MARK, sizeof(HASH_MARK) - 1) != 0)
		return -EINVAL;
	at += sizeof(HASH_MARK) - 1;
	if (from_hex(at, ret_hash) < 0)
		return -EINVAL;
	at += CHAIN_HEX_LEN;
	return memcmp(at, END_MARK, sizeof(END_MARK) - 1) == 0 ? 0 : -EINVAL;
}

enum chain_fault chain_check(const struct chain_head *head, const char *line, size_t len,
                             struct chain_head *ret_head)
{
	/* The hash covers everything up to the quote after prev. */
	size_t tail = sizeof(HASH_MARK) - 2 + CHAIN_HEX_LEN + sizeof(END_MARK) - 1;
	uint8_t prev[CHAIN_HASH_LEN], own[CHAIN_HASH_LEN];
	struct chain_head next;

	if (read_seq(line, len, &next.seq) < 0 || read_tail(line, len, prev, next.hash) < 0)
		return CHAIN_MALFORMED;
	*ret_head = next;
	hash_of(line, len - tail, own);
	if (memcmp(own, next.hash, CHAIN_HASH_LEN) != 0)
		return CHAIN_BAD_HASH;
	if (!head)
		return CHAIN_FINE;
	if (next.seq != head->seq + 1)
		return CHAIN_BAD_SEQ;
	return memcmp(prev, head->hash, CHAIN_HASH_LEN) == 0 ? CHAIN_FINE : CHAIN_BAD_PREV;
}

void chain_head_print(const struct chain_head *head, char ret_text[CHAIN_HEAD_LEN + 1])
{
	char hex[CHAIN_HEX_LEN + 1];

	to_hex(head->hash, hex);
	(void)snprintf(ret_text, CHAIN_HEAD_LEN + 1, "%020" PRIu64 " %s\n", head->seq, hex);
}

int chain_head_parse(const char *text, size_t len, struct chain_head *ret_head)
{
	char digits[SEQ_DIGITS_MAX + 1];
	struct chain_head head;
	const char *start = digits;

	if (len != CHAIN_HEAD_LEN || text[SEQ_DIGITS_MAX] != ' ' || text[len - 1] != '\n')
		return -EINVAL;
	memcpy(digits, text, SEQ_DIGITS_MAX);
	digits[SEQ_DIGITS_MAX] = '\0';
	if (strlen(digits) != SEQ_DIGITS_MAX)
		return -EINVAL;
	while (start[0] == '0' && start[1] != '\0')
		start++;
	if (parse_u64(start, &head.seq) < 0 || from_hex(text + SEQ_DIGITS_MAX + 1, head.hash) < 0)
		return -EINVAL;
	*ret_head = head;
	return 0;
}
