/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "remote/relay.h"
#include "remote/remote.h"

/*
 * The life of a box:
 *
 *   MAKING ──▶ UP ──▶ ENDING ──▶ gone
 *      └─────────────────▲
 *
 * Every way out goes through the server's destroy, which may take as long as the server is away:
 * GONE promises that nothing is left. Only the daemon sends the program, after CREATED, so whatever
 * is tried again here cannot run it twice.
 */

static struct engine_reply reply_to(const struct remote_box *box, enum engine_op op, uint32_t seq)
{
	struct engine_reply reply;

	/* Padding and the unused part of the union leave this process too. */
	memset(&reply, 0, sizeof(reply));
	reply.op = op;
	reply.seq = seq;
	memcpy(reply.box_id, box->request.box_id, sizeof(reply.box_id));
	return reply;
}

struct remote_box *box_new(struct remote *r, const struct engine_request *request, uint32_t slot)
{
	struct remote_box *box = NEW(struct remote_box);

	box->remote = r;
	box->request = *request;
	box->slot = slot;
	box->create_seq = request->seq;
	box->wait_status = SIGKILL;
	box->daemon_end = -1;
	return box;
}

static void lose_stream(struct remote_box *box)
{
	relay_free(TAKE_PTR(box->relay));
	box->daemon_end = fd_close(box->daemon_end);
}

void box_end(struct remote_box *box)
{
	if (box->state == REMOTE_BOX_ENDING)
		return;
	box->state = REMOTE_BOX_ENDING;
	lose_stream(box);
	remote_ops_of(box->remote)->destroy(remote_server_of(box->remote), box);
}

static void on_stream_end(void *ctx, int sys)
{
	struct remote_box *box = ctx;

	log_debug("box %s: its stream has ended (%s)", box->request.box_id, strerror(sys));
	/* Being made: the server has yet to say whether that failed. What the agent said waits at
	 * the daemon's end. */
	if (box->state == REMOTE_BOX_MAKING)
		relay_free(TAKE_PTR(box->relay));
	else
		box_end(box);
}

int box_connect(struct remote_box *box, struct remote_stream *far)
{
	int pair[2];
	int r = fd_socketpair(SOCK_STREAM, pair);

	if (r < 0) {
		far->free(far);
		return r;
	}
	box->daemon_end = pair[0];
	box->relay = relay_new(remote_loop(box->remote), pair[1], far, on_stream_end, box);
	return 0;
}

void box_is_up(struct remote_box *box, const struct engine_created *created,
               int fds[ENGINE_FD_COUNT])
{
	struct engine_reply reply = reply_to(box, ENGINE_CREATED, box->create_seq);
	int passed[ENGINE_FD_COUNT];
	size_t count = 0;

	reply.created = *created;
	reply.created.fds = 0;
	fds[ENGINE_FD_AGENT] = TAKE_FD(box->daemon_end);
	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++) {
		if (fds[i] < 0)
			continue;
		reply.created.fds |= 1u << i;
		passed[count++] = fds[i];
	}
	box->state = REMOTE_BOX_UP;
	box->announced = true;
	box->create_seq = 0;
	remote_reply(box->remote, &reply, passed, count);
	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++)
		fds[i] = fd_close(fds[i]);
}

void box_has_failed(struct remote_box *box, const struct error *err)
{
	if (box->create_seq)
		remote_fail(box->remote, box->create_seq, box->request.box_id, err);
	box->create_seq = 0;
	box_end(box);
}

void box_has_ended(struct remote_box *box, int wait_status)
{
	box->wait_status = wait_status;
	box_end(box);
}

void box_is_frozen(struct remote_box *box, const struct error *err)
{
	struct engine_reply reply = reply_to(box, ENGINE_FROZEN, box->freeze_seq);

	if (err)
		remote_fail(box->remote, box->freeze_seq, box->request.box_id, err);
	else
		remote_reply(box->remote, &reply, NULL, 0);
	box->freeze_seq = 0;
}

void box_is_gone(struct remote_box *box)
{
	struct engine_reply reply = reply_to(box, ENGINE_GONE, box->destroy_seq);
	struct remote *r = box->remote;

	reply.gone.wait_status = box->wait_status;
	/* FAILED was the answer to CREATE, unless DESTROY overtook it. */
	if (box->announced || box->destroy_seq)
		remote_reply(r, &reply, NULL, 0);
	lose_stream(box);
	remote_forget(r, box);
	free(box);
}
