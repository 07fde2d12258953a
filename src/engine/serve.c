/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/box.h"
#include "engine/request.h"

/*
 * The loop: requests of the daemon, news of boxes, time. One thread. The socket stays blocking for
 * sending, with a limit: a daemon that does not read for that long is as good as dead, and the
 * engine ends with it.
 */

#define EVENTS_MAX       64
#define SEND_TIMEOUT_SEC 10

/* Above all values of boxes. */
enum watch {
	WATCH_SOCKET = BOXES_MAX * 2,
};

struct server {
	const struct host *host;
	int sock; /* borrowed; -1 when the daemon is gone */
	int epoll;
	bool stopping;
	struct boxes boxes;
};

static void send_reply(struct server *s, const struct engine_reply *reply, const int *fds,
                       size_t count)
{
	int r;

	if (s->sock < 0)
		return;
	r = fd_send(s->sock, reply, sizeof(*reply), fds, count);
	if (r >= 0)
		return;
	log_info("the daemon is gone (%s)", strerror(-r));
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->sock, NULL);
	s->sock = -1;
	s->stopping = true;
}

static struct engine_reply reply_to(enum engine_op op, uint32_t seq, const char *id)
{
	struct engine_reply reply;

	/* All of it: padding and the unused part of the union leave this process too. */
	memset(&reply, 0, sizeof(reply));
	reply.op = op;
	reply.seq = seq;
	memcpy(reply.box_id, id, sizeof(reply.box_id));
	return reply;
}

static void send_failed(struct server *s, uint32_t seq, const char *id, const struct error *err)
{
	struct engine_reply reply = reply_to(ENGINE_FAILED, seq, id);

	reply.error = *err;
	send_reply(s, &reply, NULL, 0);
}

struct passed {
	uint32_t mask;
	size_t count;
	int fds[ENGINE_FD_COUNT];
};

static void pass(struct passed *passed, enum engine_fd which, int fd)
{
	if (fd < 0)
		return;
	passed->mask |= 1u << which;
	passed->fds[passed->count++] = fd;
}

static int cpu_dir(const struct host *host, const struct box_groups *groups)
{
	/* Where the CPU time used is counted: by v2 without any controller, by v1 in cpuacct. */
	int dir = groups_dir(host, groups, CGROUP_UNIFIED);

	return dir >= 0 ? dir : groups_dir(host, groups, CGROUP_CPUACCT);
}

static void on_created(void *ctx, struct box *box)
{
	struct server *s = ctx;
	struct build *b = &box->build;
	struct engine_reply reply = reply_to(ENGINE_CREATED, box->create_seq, b->id);
	const struct ids *ids = &s->host->ids;
	cleanup_close int kill_file = groups_open_kill(s->host, &b->groups);
	struct passed passed = {0};

	pass(&passed, ENGINE_FD_AGENT, b->agent_host);
	pass(&passed, ENGINE_FD_PIDFD, b->pidfd);
	pass(&passed, ENGINE_FD_KILL, kill_file);
	pass(&passed, ENGINE_FD_MEMORY, groups_dir(s->host, &b->groups, CGROUP_MEMORY));
	pass(&passed, ENGINE_FD_PIDS, groups_dir(s->host, &b->groups, CGROUP_PIDS));
	pass(&passed, ENGINE_FD_CPU, cpu_dir(s->host, &b->groups));
	reply.created = (struct engine_created){
		.fds = passed.mask,
		.layers = b->plan.layers,
		.host_uid = ids->host_first + (ids_payload(ids, b->slot) - ids->first),
		.pid = (uint32_t)b->pid,
		.uid = BOX_PAYLOAD_ID,
		.gid = BOX_PAYLOAD_ID,
	};
	box->create_seq = 0;
	box->announced = true;
	send_reply(s, &reply, passed.fds, passed.count);
	b->agent_host = fd_close(b->agent_host);
}

static void on_failed(void *ctx, struct box *box, const struct error *err)
{
	struct server *s = ctx;

	send_failed(s, box->create_seq, box->build.id, err);
	box->create_seq = 0;
}

static void on_gone(void *ctx, const struct box *box)
{
	struct server *s = ctx;
	struct engine_reply reply = reply_to(ENGINE_GONE, box->destroy_seq, box->build.id);

	/* A request that failed has its answer already. */
	if (!box->announced && box->destroy_seq == 0)
		return;
	reply.gone.wait_status = box->wait_status;
	reply.gone.leftovers = box->leftovers;
	send_reply(s, &reply, NULL, 0);
}

static void do_probe(struct server *s, const struct engine_request *req)
{
	struct engine_reply reply = reply_to(ENGINE_PROBED, req->seq, req->box_id);
	const struct engine_limits limits = request_limits_default();
	struct error err = {0};
	struct plan plan;

	if (plan_make(&s->host->facts, &limits, 0, &plan, &err) < 0) {
		send_failed(s, req->seq, req->box_id, &err);
		return;
	}
	reply.probe = (struct engine_probe){
		.layers = plan.layers | plan_agent_layers(s->host->landlock_abi),
		.cgroup = s->host->facts.cgroup,
		.ids = s->host->ids.mode,
		.landlock_abi = s->host->landlock_abi,
		.uid = BOX_PAYLOAD_ID,
		.gid = BOX_PAYLOAD_ID,
		.daemon_uid = s->host->ids.daemon_uid,
		.boxes_max = s->host->slots,
	};
	send_reply(s, &reply, NULL, 0);
}

static void do_create(struct server *s, const struct engine_request *req)
{
	struct error err = {0};

	if (request_limits_within(&req->limits, &s->host->maxima, &err) < 0 ||
	    boxes_create(&s->boxes, req, &err) < 0)
		send_failed(s, req->seq, req->box_id, &err);
}

static void do_destroy(struct server *s, const struct engine_request *req)
{
	struct box *box = boxes_find(&s->boxes, req->box_id);
	struct engine_reply gone = reply_to(ENGINE_GONE, req->seq, req->box_id);
	struct error err = {0};

	/* The daemon's wish and the box's own end may cross: what is not there is gone. */
	if (!box) {
		send_reply(s, &gone, NULL, 0);
	} else if (box->destroy_seq != 0) {
		(void)error_set(&err, ERR_CONFLICT, 0, "the box is being destroyed");
		send_failed(s, req->seq, req->box_id, &err);
	} else {
		box->destroy_seq = req->seq;
		box_end(&s->boxes, box);
	}
}

static void do_freeze(struct server *s, const struct engine_request *req)
{
	struct box *box = boxes_find(&s->boxes, req->box_id);
	struct engine_reply reply = reply_to(ENGINE_FROZEN, req->seq, req->box_id);
	struct error err = {0};
	int r;

	if (!box || box->state != BOX_RUNNING) {
		(void)error_set(&err, ERR_NOT_FOUND, 0, "no running box '%s'", req->box_id);
		send_failed(s, req->seq, req->box_id, &err);
		return;
	}
	r = groups_freeze(s->host, &box->build.groups, req->frozen);
	if (r < 0) {
		(void)error_set(&err, ERR_UNAVAILABLE, -r, "freeze the box");
		send_failed(s, req->seq, req->box_id, &err);
		return;
	}
	send_reply(s, &reply, NULL, 0);
}

/* Permitted requests; nothing else gets past request_check(). */
static const struct {
	void (*handle)(struct server *s, const struct engine_request *req);
	bool while_stopping;
} handlers[ENGINE_OP_COUNT] = {
	[ENGINE_PROBE] = {do_probe,   true },
	[ENGINE_CREATE] = {do_create,  false},
	[ENGINE_DESTROY] = {do_destroy, true },
	[ENGINE_FREEZE] = {do_freeze,  false},
};

static void on_request(struct server *s)
{
	/* One more byte than a request, so that a longer one is seen to be longer. */
	char bytes[sizeof(struct engine_request) + 1];
	struct engine_request req;
	struct error err = {0};
	ssize_t n = fd_recv(s->sock, bytes, sizeof(bytes), NULL, NULL);

	if (n == 0 || n == -ECONNRESET) {
		log_debug("the daemon closed its end");
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->sock, NULL);
		s->sock = -1;
		s->stopping = true;
		return;
	}
	if (request_check(bytes, n > 0 ? (size_t)n : 0, &req, &err) == 0 && s->stopping &&
	    !handlers[req.op].while_stopping)
		(void)error_set(&err, ERR_UNAVAILABLE, 0, "the engine is stopping");
	if (error_is_set(&err))
		send_failed(s, req.seq, req.box_id, &err);
	else
		handlers[req.op].handle(s, &req);
}

static void on_event(struct server *s, uint64_t watch)
{
	if (watch != WATCH_SOCKET)
		boxes_on_event(&s->boxes, watch);
	else if (s->sock >= 0)
		on_request(s);
}

static int add_watch(struct server *s, int fd, enum watch watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = watch};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_server(struct server *s, struct error *err)
{
	const struct timeval limit = {.tv_sec = SEND_TIMEOUT_SEC};
	int r = s->epoll = fd_epoll();

	if (r >= 0)
		r = fd_set_nonblock(s->sock, false);
	if (r >= 0 && setsockopt(s->sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		r = -errno;
	if (r >= 0)
		r = add_watch(s, s->sock, WATCH_SOCKET);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "loop of the engine");
	return 0;
}

static int run(struct server *s, struct error *err)
{
	struct epoll_event events[EVENTS_MAX];
	int timeout = -1;

	while (!s->stopping || !list_is_empty(&s->boxes.all)) {
		int n = epoll_wait(s->epoll, events, EVENTS_MAX, timeout);

		if (n < 0 && errno != EINTR)
			return error_set(err, ERR_SYSTEM, errno, "wait for events");
		for (int i = 0; i < n; i++)
			on_event(s, events[i].data.u64);
		if (s->stopping)
			boxes_end_all(&s->boxes);
		/* After the events: only here boxes are freed and slots given back. */
		timeout = boxes_work(&s->boxes);
	}
	return 0;
}

int serve(struct host *host, int sock, struct error *err)
{
	struct server *s = NEW(struct server);
	struct boxes_events events = {
		.ctx = s,
		.on_created = on_created,
		.on_failed = on_failed,
		.on_gone = on_gone,
	};
	int r;

	*s = (struct server){.host = host, .sock = sock, .epoll = -1};
	r = open_server(s, err);
	if (r >= 0) {
		r = boxes_init(&s->boxes, host, s->epoll, &events);
		r = r < 0 ? error_set(err, ERR_SYSTEM, -r, "own network namespace") : run(s, err);
		boxes_done(&s->boxes);
	}
	(void)fd_close(s->epoll);
	free(s);
	return r;
}
