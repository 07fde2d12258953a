/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow.h"

#include "base/fd.h"
#include "egress/channel.h"
#include "egress/vault.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

void flow_init(struct flow *f, struct channel *from, struct channel *to)
{
	*f = (struct flow){
		.from = from, .to = to, .waiting = BUF_INIT(FLOW_CHUNK), .pipe = {-1, -1}};
}

void flow_set_scrub(struct flow *f, struct scrub *scrub)
{
	f->scrub = scrub;
	f->waiting.max = FLOW_CHUNK + VAULT_VALUE_MAX;
}

static void free_waiting(struct flow *f)
{
	if (f->is_secret && f->waiting.data)
		explicit_bzero(f->waiting.data, f->waiting.cap);
	buf_done(&f->waiting);
}

void flow_set_pipes(struct flow *f, struct flow_pipes *pipes)
{
	assert(!f->filter && !f->scrub && !f->from->tls && !f->to->tls);
	f->pipes = pipes;
}

/* Without one the bytes are copied. */
static void take_pipe(struct flow *f)
{
	if (!f->pipes || f->pipe[0] >= 0 || f->pipes->used == FLOW_PIPES_MAX ||
	    fd_pipe(f->pipe, O_NONBLOCK) < 0)
		return;
	/* A smaller one does, too. */
	(void)fcntl(f->pipe[0], F_SETPIPE_SZ, FLOW_PIPE_BYTES);
	f->pipes->used++;
}

static void drop_pipe(struct flow *f)
{
	if (f->pipe[0] < 0)
		return;
	f->pipe[0] = fd_close(f->pipe[0]);
	f->pipe[1] = fd_close(f->pipe[1]);
	f->pipes->used--;
}

void flow_done(struct flow *f)
{
	if (f->from) /* it was begun */
		drop_pipe(f);
	free_waiting(f);
	scrub_free(f->scrub);
}

static int send_waiting(struct flow *f)
{
	ssize_t n = f->waiting.len > 0 ? channel_send(f->to, f->waiting.data, f->waiting.len) : 0;

	if (n < 0)
		return (int)n;
	buf_consume(&f->waiting, (size_t)n);
	if (f->waiting.len == 0)
		free_waiting(f);
	return 0;
}

/* Return: bytes moved, 0 at the end of @from, or a negative errno. */
static ssize_t move(int from, int to, size_t most)
{
	ssize_t n = splice(from, NULL, to, NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return n;
}

static int empty_pipe(struct flow *f)
{
	ssize_t n = f->piped > 0 ? move(f->pipe[0], f->to->fd, f->piped) : 0;

	if (n < 0)
		return n == -EAGAIN ? 0 : (int)n;
	f->piped -= (size_t)n;
	return 0;
}

/* Return: bytes received, or a negative errno. */
static ssize_t pump_pipe(struct flow *f, size_t most)
{
	ssize_t n = move(f->from->fd, f->pipe[1], most < FLOW_PIPE_BYTES ? most : FLOW_PIPE_BYTES);
	int r;

	if (n < 0)
		return n == -EAGAIN ? 0 : n;
	f->ended = n == 0;
	f->piped = (size_t)n;
	r = empty_pipe(f);
	return r < 0 ? r : n;
}

/* Return: bytes received, 0 if there are none, or a negative errno. */
static ssize_t receive(struct flow *f, char *scratch, size_t most)
{
	ssize_t n = channel_recv(f->from, scratch, most);

	if (n < 0)
		return n == -EAGAIN ? 0 : n;
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

/* Return: 0 or a negative errno. */
static int pass_scrubbed(struct flow *f, const char *data, size_t len)
{
	int r = scrub_feed(f->scrub, data, len, f->ended, &f->waiting);

	return r < 0 ? r : send_waiting(f);
}

static int pass_on(struct flow *f, const char *data, size_t received)
{
	int64_t len = apply_filter(f, data, received);
	ssize_t n = len > 0 ? channel_send(f->to, data, (size_t)len) : 0;

	if (len < 0 || n < 0)
		return len < 0 ? (int)len : (int)n;
	return n < len ? buf_add(&f->waiting, data + n, (size_t)(len - n)) : 0;
}

static void pass_end(struct flow *f)
{
	if (!f->ended || f->finished || f->waiting.len > 0 || f->piped > 0)
		return;
	/* What was cut off does not look complete. */
	f->is_ending = !f->filter && !channel_was_cut(f->from) && channel_end(f->to) == -EAGAIN;
	f->finished = !f->is_ending;
}

int flow_pump(struct flow *f, size_t most, size_t *ret_moved)
{
	static char scratch[FLOW_CHUNK]; /* one thread */
	ssize_t n = 0;
	int r = send_waiting(f);

	*ret_moved = 0;
	if (r >= 0)
		r = empty_pipe(f);
	if (r < 0)
		return r;
	if (flow_wants_read(f) && most > 0 && f->pipe[0] >= 0) {
		n = pump_pipe(f, most);
		r = n < 0 ? (int)n : 0;
	} else if (flow_wants_read(f) && most > 0) {
		n = receive(f, scratch, most < sizeof(scratch) ? most : sizeof(scratch));
		if (n >= 0 && f->scrub)
			r = pass_scrubbed(f, scratch, (size_t)n);
		else
			r = n > 0 ? pass_on(f, scratch, (size_t)n) : (int)n;
	}
	if (r < 0)
		return r;
	if (n == FLOW_CHUNK)
		take_pipe(f);
	*ret_moved = (size_t)n;
	pass_end(f);
	return 0;
}
