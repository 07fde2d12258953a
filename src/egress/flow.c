/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

void flow_init(struct flow *f, int from, int to)
{
	*f = (struct flow){.from = from, .to = to, .waiting = BUF_INIT(FLOW_CHUNK)};
}

void flow_done(struct flow *f)
{
	buf_done(&f->waiting);
}

/* Return: bytes sent, 0 if the receiver is full, or a negative errno. */
static ssize_t send_some(int to, const char *data, size_t len)
{
	ssize_t n = send(to, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n;
}

static int send_waiting(struct flow *f)
{
	ssize_t n = f->waiting.len > 0 ? send_some(f->to, f->waiting.data, f->waiting.len) : 0;

	if (n < 0)
		return (int)n;
	buf_consume(&f->waiting, (size_t)n);
	if (f->waiting.len == 0)
		buf_done(&f->waiting);
	return 0;
}

/* Return: bytes received, 0 if there are none, or a negative errno. */
static ssize_t receive(struct flow *f, char *scratch, size_t most)
{
	ssize_t n = recv(f->from, scratch, most, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	f->ended = n == 0;
	return n;
}

/* Return: how many bytes may pass, or a negative errno. */
static int64_t apply_filter(struct flow *f, const char *data, size_t len)
{
	bool done = false;
	int64_t n = f->filter ? f->filter(f->filter_ctx, data, len, &done) : (int64_t)len;

	f->ended = f->ended || done;
	return n < 0 ? -EPROTO : n;
}

static int pass_on(struct flow *f, const char *data, size_t received)
{
	int64_t len = apply_filter(f, data, received);
	ssize_t n = len > 0 ? send_some(f->to, data, (size_t)len) : 0;

	if (len < 0 || n < 0)
		return len < 0 ? (int)len : (int)n;
	return n < len ? buf_add(&f->waiting, data + n, (size_t)(len - n)) : 0;
}

static void pass_end(struct flow *f)
{
	if (!f->ended || f->finished || f->waiting.len > 0)
		return;
	f->finished = true;
	if (!f->filter)
		(void)shutdown(f->to, SHUT_WR);
}

int flow_pump(struct flow *f, size_t most, size_t *ret_moved)
{
	static char scratch[FLOW_CHUNK]; /* one thread */
	ssize_t n = 0;
	int r = send_waiting(f);

	*ret_moved = 0;
	if (r < 0)
		return r;
	if (flow_wants_read(f) && most > 0) {
		n = receive(f, scratch, most < sizeof(scratch) ? most : sizeof(scratch));
		r = n > 0 ? pass_on(f, scratch, (size_t)n) : (int)n;
	}
	if (r < 0)
		return r;
	*ret_moved = (size_t)n;
	pass_end(f);
	return 0;
}
