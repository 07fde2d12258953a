/* SPDX-License-Identifier: Apache-2.0 */
#include "chain/chain.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define READ_BYTES 65536

/* Return: whether to continue. */
static bool check_line(struct chain_verdict *v, const char *line, size_t len, uint64_t number)
{
	struct chain_head next = {0};
	enum chain_fault fault = chain_check(v->head.seq ? &v->head : NULL, line, len, &next);

	if (fault == CHAIN_FINE && v->head.seq == 0 && next.seq == 1)
		fault = chain_check(&v->head, line, len, &next);
	if (fault != CHAIN_FINE) {
		v->fault = fault;
		v->bad_line = number;
		return false;
	}
	if (v->first_seq == 0)
		v->first_seq = next.seq;
	v->head = next;
	for (size_t i = 0; i < CHAIN_WATCHES; i++)
		if (next.seq == v->watch_seq[i])
			v->watched[i] = next;
	v->records++;
	v->good_bytes += len + 1;
	return true;
}

static bool check_lines(struct chain_verdict *v, struct buf *b, uint64_t *number)
{
	size_t done = 0;
	bool good = true;
	char *end;

	while (good && b->len > done && (end = memchr(b->data + done, '\n', b->len - done))) {
		size_t len = (size_t)(end - (b->data + done));

		good = check_line(v, b->data + done, len, ++*number);
		done += len + 1;
	}
	buf_consume(b, done);
	return good;
}

int chain_verify_fd(int fd, struct chain_verdict *v)
{
	cleanup_buf struct buf b = BUF_INIT(CHAIN_LINE_MAX + READ_BYTES);
	uint64_t number = 0;
	off_t at = 0;

	v->good_bytes = 0;
	while (v->fault == CHAIN_FINE) {
		ssize_t n;

		if (buf_reserve(&b, READ_BYTES) < 0) {
			v->fault = CHAIN_MALFORMED; /* longer than the maximum */
			v->bad_line = number + 1;
			return 0;
		}
		n = pread(fd, b.data + b.len, READ_BYTES, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		b.len += (size_t)n;
		b.data[b.len] = '\0';
		at += n;
		if (!check_lines(v, &b, &number))
			return 0;
	}
	if (b.len > 0) {
		v->fault = CHAIN_TORN;
		v->bad_line = number + 1;
	}
	return 0;
}

static bool was_watched(const struct chain_head *head, const struct chain_verdict *v)
{
	for (size_t i = 0; i < CHAIN_WATCHES; i++)
		if (v->watched[i].seq == head->seq &&
		    memcmp(v->watched[i].hash, head->hash, CHAIN_HASH_LEN) == 0)
			return true;
	return false;
}

void chain_verify_head(const struct chain_head *head, struct chain_verdict *v)
{
	if (v->fault != CHAIN_FINE && v->fault != CHAIN_TORN)
		return;
	if (head->seq > v->head.seq)
		v->fault = CHAIN_CUT;
	else if (head->seq > 0 && head->seq >= v->first_seq && !was_watched(head, v))
		v->fault = CHAIN_BAD_HEAD;
}
