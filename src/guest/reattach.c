/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/reattach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/fd.h"
#include "guest/agent.h"
#include "wire/reattach.h"

int reattach_open(struct agent *a, int argc, char **argv)
{
	a->reattach = -1;
	journal_init(&a->journal, false);
	if (argc < 2 || strcmp(argv[1], REATTACH_ARG) != 0)
		return 0;
	if (fcntl(REATTACH_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	a->reattach = REATTACH_FD;
	a->journal.on = true;
	return fd_set_nonblock(a->reattach, true);
}

/* Its sender sends it again, or never. */
static void drop_put(struct agent *a)
{
	/* Before its pipe ends: it would take that for the end of the file. */
	if (a->put.child.status >= 0 && a->put.child.pid > 0)
		(void)kill(a->put.child.pid, SIGKILL);
	put_close(&a->put);
}

bool reattach_on_stream_lost(struct agent *a)
{
	/* Before SETUP there is nothing to keep. */
	if (a->reattach < 0 || !a->is_set_up)
		return false;
	/* Keep what was about to be sent. */
	if (journal_note(&a->journal, &a->ch) < 0)
		return false;
	channel_close(&a->ch);
	journal_detach(&a->journal);
	drop_put(a);
	files_reset(a);
	ports_drop(a);
	a->failed = 0;
	a->proc.in.room = 0;
	beside_detach(a);
	return true;
}

static int describe_entry(struct agent *a, const struct journal_entry *e)
{
	const struct input *in = proc_input(a, e->id);
	struct msg_describe msg = {
		.keep = e->keep,
		.runner = e->runner,
		.text = wire_str(e->label),
	};

	if (in && in->opened && !in->ended) {
		msg.stdin_open = 1;
		msg.stdin_room = WIRE_STDIN_WINDOW - (uint32_t)in->pending.len;
		msg.stdin_bytes = in->taken;
	}
	return msg_describe_encode(&a->ch.out, e->id, &msg);
}

static int send_resume(struct agent *a)
{
	struct journal *j = &a->journal;
	const struct msg_resume msg = {.last_id = j->last_id, .count = (uint32_t)j->count};
	int r = agent_send_hello(a);

	if (r >= 0)
		r = msg_resume_encode(&a->ch.out, 0, &msg);
	for (size_t i = 0; i < j->count && r >= 0; i++)
		r = describe_entry(a, &j->entries[i]);
	journal_replay(j);
	return r < 0 ? r : agent_flush(a);
}

int reattach_accept(struct agent *a)
{
	struct reattach_message msg = {0};
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n = fd_recv(a->reattach, &msg, sizeof(msg), fds, &count);
	int r = 0;

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n == 0)
		return 1;
	if (n != sizeof(msg) || msg.magic != REATTACH_MAGIC || count != 1) {
		for (size_t i = 0; n > 0 && i < count; i++)
			(void)fd_close(fds[i]);
		return -EPROTO;
	}
	/* The old stream may still be open; ignore it. */
	if (!reattach_on_stream_lost(a)) {
		(void)fd_close(fds[0]);
		return -EPROTO;
	}
	r = channel_init(&a->ch, fds[0], -1);
	if (r >= 0)
		r = send_resume(a);
	/* The new daemon is gone already. */
	if (r == -EPIPE || r == -ECONNRESET)
		return reattach_on_stream_lost(a) ? 0 : r;
	return r;
}
