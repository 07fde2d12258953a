/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "engine/request.h"
#include "io/loop.h"
#include "remote/remote.h"

/*
 * The daemon's requests, as of engine/engine.h. When the daemon is gone, all boxes end, because no
 * other daemon could get their streams; a server that does not answer then gets STOP_US, and what
 * is left is removed at the next start.
 */

#define SEND_TIMEOUT_MS 10000
#define STOP_US         (10 * USEC_PER_SEC)
/* Requests before other events get a turn. */
#define REQUESTS_MAX 64

struct remote {
	const struct remote_options *options;
	const struct remote_ops *ops;
	void *server;
	struct loop *loop;
	struct watch *watch;
	struct timer *stop;
	int sock;           /* owned by the caller; -1: the daemon is gone */
	uint32_t probe_seq; /* 0: none waits */
	bool is_probed, is_unusable, stopping;
	struct map *boxes; /* by id */
	struct list all;
	uint32_t slots_next;
	uint32_t daemon_uid; /* 0: it keeps its own */
	bool slots[REMOTE_BOXES_MAX];
};

struct remote_uids remote_uids(const struct remote_options *options)
{
	uint32_t own = (uint32_t)options->uid_base;

	return (struct remote_uids){own, own + 1, own + 1 + REMOTE_BOXES_MAX};
}

struct loop *remote_loop(struct remote *r)
{
	return r->loop;
}

const struct remote_ops *remote_ops_of(const struct remote *r)
{
	return r->ops;
}

void *remote_server_of(const struct remote *r)
{
	return r->server;
}

bool remote_has_box(const struct remote *r, const char *id)
{
	return map_get(r->boxes, id) != NULL;
}

static void stop_if_done(struct remote *r)
{
	if (r->stopping && list_is_empty(&r->all))
		loop_stop(r->loop);
}

static void begin_to_stop(struct remote *r)
{
	struct remote_box *box;

	if (r->stopping)
		return;
	r->stopping = true;
	timer_start(r->stop, STOP_US);
	LIST_FOREACH (box, &r->all, struct remote_box, node)
		box_end(box);
	stop_if_done(r);
}

static void on_stop_overdue(void *ctx)
{
	struct remote *r = ctx;

	log_warn("%s does not remove its boxes, leaving them to the next start", r->ops->name);
	loop_stop(r->loop);
}

static void lose_daemon(struct remote *r)
{
	watch_set(r->watch, 0);
	r->sock = -1;
	begin_to_stop(r);
}

/* Waits for a daemon that reads slowly; one that does not read is treated as dead. */
void remote_reply(struct remote *r, struct engine_reply *reply, const int *fds, size_t count)
{
	struct pollfd room = {.fd = r->sock, .events = POLLOUT};
	int n;

	if (r->sock < 0)
		return;
	n = fd_send(r->sock, reply, sizeof(*reply), fds, count);
	if (n == -EAGAIN && poll(&room, 1, SEND_TIMEOUT_MS) > 0)
		n = fd_send(r->sock, reply, sizeof(*reply), fds, count);
	if (n >= 0)
		return;
	log_info("the daemon is gone (%s)", strerror(-n));
	/* The next read reports it: the caller may be walking the boxes. */
	(void)shutdown(r->sock, SHUT_RDWR);
}

static struct engine_reply reply_to(enum engine_op op, uint32_t seq, const char *id)
{
	struct engine_reply reply;

	/* Padding and the unused part of the union leave this process too. */
	memset(&reply, 0, sizeof(reply));
	reply.op = op;
	reply.seq = seq;
	(void)!str_copy(reply.box_id, sizeof(reply.box_id), id);
	return reply;
}

void remote_fail(struct remote *r, uint32_t seq, const char *box_id, const struct error *err)
{
	struct engine_reply reply = reply_to(ENGINE_FAILED, seq, box_id);

	reply.error = *err;
	remote_reply(r, &reply, NULL, 0);
}

void remote_probed(struct remote *r, const struct engine_probe *probe)
{
	struct engine_reply reply = reply_to(ENGINE_PROBED, r->probe_seq, "");

	reply.probe = *probe;
	reply.probe.boxes_max = REMOTE_BOXES_MAX;
	reply.probe.identity = r->options->identity;
	reply.probe.daemon_uid = r->daemon_uid;
	r->is_probed = true;
	r->probe_seq = 0;
	remote_reply(r, &reply, NULL, 0);
}

void remote_is_unusable(struct remote *r, const struct error *err)
{
	remote_fail(r, r->probe_seq, "", err);
	r->is_unusable = true;
	begin_to_stop(r);
}

static int take_slot(struct remote *r)
{
	for (uint32_t i = 0; i < REMOTE_BOXES_MAX; i++) {
		/* Not the one that became free last: its id may still be charged for something. */
		uint32_t slot = (r->slots_next + i) % REMOTE_BOXES_MAX;

		if (r->slots[slot])
			continue;
		r->slots[slot] = true;
		r->slots_next = slot + 1;
		return (int)slot;
	}
	return -EBUSY;
}

void remote_forget(struct remote *r, struct remote_box *box)
{
	r->slots[box->slot] = false;
	(void)map_remove(r->boxes, box->request.box_id);
	list_remove(&box->node);
	stop_if_done(r);
}

static void do_probe(struct remote *r, const struct engine_request *req)
{
	struct error err = {0};

	if (r->probe_seq) {
		(void)error_set(&err, ERR_CONFLICT, 0, "an earlier PROBE is not answered");
		remote_fail(r, req->seq, "", &err);
		return;
	}
	r->probe_seq = req->seq;
	r->ops->probe(r->server);
}

static int check_create(struct remote *r, const struct engine_request *req, struct error *err)
{
	const uint32_t never = ENGINE_FLAG_BRIDGE | ENGINE_FLAG_HOST_NETWORK | ENGINE_FLAG_EGRESS |
	                       ENGINE_FLAG_GATEWAY;

	if (!r->is_probed || r->stopping)
		return error_set(err, ERR_UNAVAILABLE, 0, "%s is not ready", r->ops->name);
	if (remote_has_box(r, req->box_id))
		return error_set(err, ERR_CONFLICT, 0, "box %s exists", req->box_id);
	if (req->flags & never)
		return error_field(err, "flags", "boxes of %s have no network", r->ops->name);
	return request_limits_within(&req->limits, &r->options->maxima, err);
}

static void do_create(struct remote *r, const struct engine_request *req)
{
	struct error err = {0};
	struct remote_box *box;
	int slot = -1;

	if (check_create(r, req, &err) == 0) {
		slot = take_slot(r);
		if (slot < 0)
			(void)error_set(&err, ERR_BUSY, 0, "all %d boxes are in use",
			                REMOTE_BOXES_MAX);
	}
	if (slot < 0) {
		remote_fail(r, req->seq, req->box_id, &err);
		return;
	}
	box = box_new(r, req, (uint32_t)slot);
	list_append(&r->all, &box->node);
	(void)!map_put(r->boxes, req->box_id, box);
	r->ops->create(r->server, box);
}

static void do_destroy(struct remote *r, const struct engine_request *req)
{
	struct remote_box *box = map_get(r->boxes, req->box_id);
	struct engine_reply gone = reply_to(ENGINE_GONE, req->seq, req->box_id);
	struct error err = {0};

	if (!box) {
		remote_reply(r, &gone, NULL, 0);
	} else if (box->destroy_seq) {
		(void)error_set(&err, ERR_CONFLICT, 0, "the box is being destroyed");
		remote_fail(r, req->seq, req->box_id, &err);
	} else {
		box->destroy_seq = req->seq;
		box->create_seq = 0; /* GONE answers both */
		box_end(box);
	}
}

static void do_freeze(struct remote *r, const struct engine_request *req)
{
	struct remote_box *box = map_get(r->boxes, req->box_id);
	struct error err = {0};

	if (!box || box->state != REMOTE_BOX_UP || box->freeze_seq) {
		(void)error_set(&err, ERR_NOT_FOUND, 0, "no running box '%s'", req->box_id);
		remote_fail(r, req->seq, req->box_id, &err);
		return;
	}
	box->freeze_seq = req->seq;
	box->wants_frozen = req->frozen;
	r->ops->freeze(r->server, box);
}

/* Boxes are not kept, so there is nothing to adopt or to claim, and they have no interface. */
static void do_refuse(struct remote *r, const struct engine_request *req)
{
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, 0, "%s cannot do this", r->ops->name);
	remote_fail(r, req->seq, req->box_id, &err);
}

static void do_end(struct remote *r, const struct engine_request *req)
{
	(void)req;
	begin_to_stop(r);
}

static void ignore(struct remote *r, const struct engine_request *req)
{
	(void)r;
	(void)req;
}

/* request_check lets only requests through. */
static void (*const actions[ENGINE_OP_COUNT])(struct remote *r,
                                              const struct engine_request *req) = {
	[ENGINE_PROBE] = do_probe,   [ENGINE_CREATE] = do_create, [ENGINE_DESTROY] = do_destroy,
	[ENGINE_FREEZE] = do_freeze, [ENGINE_ADOPT] = do_refuse,  [ENGINE_END] = do_end,
	[ENGINE_CLAIM] = ignore,     [ENGINE_REACH] = do_refuse,
};

/* Return: whether there may be more. */
static bool receive_request(struct remote *r)
{
	/* One byte more than a request, to detect a longer one. */
	char bytes[sizeof(struct engine_request) + 1];
	struct engine_request req;
	struct error err = {0};
	ssize_t len = fd_recv(r->sock, bytes, sizeof(bytes), NULL, NULL);

	if (len == -EAGAIN)
		return false;
	/* The daemon was killed with unread replies; its last requests and EOF follow. */
	if (len == -ECONNRESET)
		return true;
	if (len == 0) {
		lose_daemon(r);
		return false;
	}
	if (request_check(bytes, len > 0 ? (size_t)len : 0, &req, &err) < 0)
		remote_fail(r, req.seq, req.box_id, &err);
	else
		actions[req.op](r, &req);
	return r->sock >= 0;
}

static void on_request(void *ctx, int events)
{
	struct remote *r = ctx;

	(void)events;
	for (int i = 0; i < REQUESTS_MAX && receive_request(r); i++)
		;
}

static const struct remote_ops *const servers[] = {&docker_ops};

static const struct remote_ops *find_ops(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(servers); i++)
		if (str_equal(servers[i]->name, name))
			return servers[i];
	return NULL;
}

static int open_server(struct remote *r, struct error *err)
{
	r->ops = find_ops(r->options->server);
	if (!r->ops)
		return error_set(err, ERR_CONFIG, 0, "there is no engine '%.32s'",
		                 r->options->server);
	r->server = r->ops->open(r, r->options, err);
	if (!r->server)
		return -1;
	return confine(r->options, err);
}

static void close_all(struct remote *r)
{
	struct remote_box *box;

	/* The loop has ended: nothing may stop it again. */
	r->stopping = false;
	/* Those that the server did not remove in time. */
	LIST_FOREACH (box, &r->all, struct remote_box, node) {
		r->ops->forget(box);
		box_is_gone(box);
	}
	if (r->server)
		r->ops->close(r->server);
	watch_free(r->watch);
	timer_free(r->stop);
	map_free(r->boxes);
	loop_free(r->loop);
	free(r);
}

int remote_serve(const struct remote_options *options, struct error *err)
{
	struct remote *r = NEW(struct remote);
	bool is_unusable;
	int result;

	r->options = options;
	r->sock = options->fd;
	/* Asked before the server's file gives it up. */
	r->daemon_uid = geteuid() == 0 ? remote_uids(options).daemon : 0;
	r->loop = loop_new();
	r->boxes = map_new();
	list_init(&r->all);
	result = open_server(r, err);
	if (result >= 0) {
		r->watch = watch_new(r->loop, r->sock, on_request, r);
		r->stop = timer_new(r->loop, on_stop_overdue, r);
		watch_set(r->watch, WATCH_READ);
		loop_run(r->loop);
	}
	is_unusable = r->is_unusable;
	r->sock = -1;
	close_all(r);
	return result < 0 || is_unusable ? -1 : 0;
}
