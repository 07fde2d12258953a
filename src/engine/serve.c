/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/box.h"
#include "engine/request.h"
#include "engine/runtime.h"

/*
 * The event loop: the daemon's requests, events of boxes, timers. Sending blocks with a timeout: a
 * daemon that does not read for that long is treated as dead.
 *
 * Without a daemon the engine keeps the boxes that have a lease and waits for the next daemon to
 * connect. See handover.c.
 */

#define EVENTS_MAX       64
#define SEND_TIMEOUT_SEC 10
/* Whether the next daemon can still connect. */
#define HANDOVER_CHECK_MS 500

/* Above all values of boxes. */
enum watch {
	WATCH_SOCKET = BOX_WATCH_ZYGOTES + ENGINE_ZYGOTES_MAX,
	WATCH_HANDOVER,
	WATCH_CHILDREN,
	WATCH_GUARD,
	WATCH_BRIDGE,
};

struct server {
	const struct host *host;
	int sock;          /* owned; -1 when the daemon is gone */
	bool write_failed; /* read to EOF, write nothing */
	int epoll;
	int children; /* signalfd of SIGCHLD */
	bool orphans; /* a child may wait to be reaped that no other event is about */
	bool stopping;
	bool adoptable;        /* took over from another daemon and has not sent ADOPT */
	uint64_t lease_end_us; /* valid without a daemon */
	struct boxes boxes;
};

static void drop_daemon(struct server *s)
{
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->sock, NULL);
	s->sock = fd_close(s->sock);
	s->write_failed = s->adoptable = false;
	boxes_forget_freezes(&s->boxes);
	/* The next daemon defines its own. */
	zygotes_drop(&s->boxes.zygotes);
	s->lease_end_us = clock_us() + s->host->handover.lease_ms * USEC_PER_MS;
}

static void send_reply(struct server *s, const struct engine_reply *reply, const int *fds,
                       size_t count)
{
	int r;

	if (s->sock < 0 || s->write_failed)
		return;
	r = fd_send(s->sock, reply, sizeof(*reply), fds, count);
	if (r >= 0)
		return;
	log_info("the daemon is gone (%s)", strerror(-r));
	/* Its last requests may be CLAIMs: on_request reads to EOF, which shutdown() guarantees. */
	s->write_failed = true;
	(void)shutdown(s->sock, SHUT_RDWR);
}

static struct engine_reply reply_to(enum engine_op op, uint32_t seq, const char *id)
{
	struct engine_reply reply;

	/* Padding and the unused part of the union leave this process too. */
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

static_assert(ENGINE_FD_COUNT <= FD_PASS_MAX, "one message has them all");

struct passed {
	uint32_t mask;
	size_t count;
	int fds[ENGINE_FD_COUNT];
};

static void add_fd(struct passed *passed, enum engine_fd which, int fd)
{
	if (fd < 0)
		return;
	passed->mask |= 1u << which;
	passed->fds[passed->count++] = fd;
}

/* The group that counts CPU time: v2 does without a controller, v1 in cpuacct. */
static int cpu_dir(const struct host *host, const struct box_groups *groups)
{
	int dir = groups_dir(host, groups, CGROUP_UNIFIED);

	return dir >= 0 ? dir : groups_dir(host, groups, CGROUP_CPUACCT);
}

/* CREATED or KEPT with the box's descriptors; @stream is the daemon's end to the agent. */
static void send_box(struct server *s, const struct box *box, struct engine_reply *reply,
                     int stream)
{
	const struct build *b = &box->build;
	const struct ids *ids = &s->host->ids;
	cleanup_close int kill_file = groups_open_kill(s->host, &b->groups);
	struct passed passed = {0};

	add_fd(&passed, ENGINE_FD_AGENT, stream);
	add_fd(&passed, ENGINE_FD_PIDFD, b->pidfd);
	add_fd(&passed, ENGINE_FD_KILL, kill_file);
	add_fd(&passed, ENGINE_FD_MEMORY, groups_dir(s->host, &b->groups, CGROUP_MEMORY));
	add_fd(&passed, ENGINE_FD_PIDS, groups_dir(s->host, &b->groups, CGROUP_PIDS));
	add_fd(&passed, ENGINE_FD_CPU, cpu_dir(s->host, &b->groups));
	add_fd(&passed, ENGINE_FD_NETWORK, b->network);
	add_fd(&passed, ENGINE_FD_GATEWAY, b->gateway);
	add_fd(&passed, ENGINE_FD_REFUSALS, b->refusals);
	reply->created = (struct engine_created){
		.fds = passed.mask,
		.layers = b->plan.layers,
		.host_uid = ids->host_first + (ids_payload(ids, b->slot) - ids->first),
		.pid = (uint32_t)b->pid,
		.uid = BOX_PAYLOAD_ID,
		.gid = BOX_PAYLOAD_ID,
		.frozen = box->frozen,
		.start = box->start,
	};
	if (s->host->runtime)
		reply->created.vouched = s->host->runtime->vouched;
	send_reply(s, reply, passed.fds, passed.count);
}

static void on_created(void *ctx, struct box *box)
{
	struct server *s = ctx;
	struct build *b = &box->build;
	struct engine_reply reply = reply_to(ENGINE_CREATED, box->create_seq, b->id);

	box->create_seq = 0;
	box->announced = true;
	send_box(s, box, &reply, b->agent_host);
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

	/* CREATE was answered by FAILED. */
	if (!box->announced && box->destroy_seq == 0)
		return;
	reply.gone.wait_status = box->wait_status;
	reply.gone.leftovers = box->leftovers;
	send_reply(s, &reply, NULL, 0);
}

static void on_frozen(void *ctx, const struct box *box, uint32_t seq, int r)
{
	struct server *s = ctx;
	struct engine_reply reply = reply_to(ENGINE_FROZEN, seq, box->build.id);
	struct error err = {0};

	if (r == 0) {
		send_reply(s, &reply, NULL, 0);
		return;
	}
	(void)error_set(&err, ERR_UNAVAILABLE, -r, "freeze the box");
	send_failed(s, seq, box->build.id, &err);
}

static uint32_t features_of(const struct host *host)
{
	uint32_t features = ENGINE_CAN_EGRESS | ENGINE_CAN_GATEWAY;

	if (host->facts.has_images)
		features |= ENGINE_CAN_IMAGE | ENGINE_CAN_PACKAGES;
	if (host->zygote_lib >= 0)
		features |= ENGINE_CAN_ZYGOTE;
	if (host->facts.has_bridge)
		features |= ENGINE_CAN_BRIDGE;
	if (host->facts.cgroup != ENGINE_CGROUP_NONE)
		features |= ENGINE_CAN_FREEZE;
	if (host->handover.lease_ms > 0)
		features |= ENGINE_CAN_KEEP;
	return host->runtime ? features & host->runtime->features : features;
}

static void name_runtime(const struct runtime *runtime, struct engine_probe *probe)
{
	probe->layers &= ~runtime->lacks;
	probe->grade = runtime->grade;
	memcpy(probe->runtime, runtime->name, sizeof(probe->runtime));
	memcpy(probe->release, runtime->release, sizeof(probe->release));
}

static void do_probe(struct server *s, const struct engine_request *req)
{
	struct engine_reply reply = reply_to(ENGINE_PROBED, req->seq, req->box_id);
	const struct engine_limits limits = request_limits_default();
	uint32_t flags = s->host->facts.host_network ? ENGINE_FLAG_HOST_NETWORK : 0;
	struct error err = {0};
	struct plan plan;

	if (plan_make(&s->host->facts, &limits, flags, &plan, &err) < 0) {
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
		.identity = s->host->identity,
		.features = features_of(s->host),
		.grade = ENGINE_GRADE_NAMESPACE,
		.runtime = "native",
		.release = MILLIBOX_VERSION,
	};
	if (s->host->runtime)
		name_runtime(s->host->runtime, &reply.probe);
	send_reply(s, &reply, s->host->groups.import,
	           s->host->groups.import[0] < 0 ? 0 : s->host->groups.count);
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

	/* DESTROY may cross the box's own end. */
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
	struct error err = {0};
	int r;

	if (box)
		box_catch_up(&s->boxes, box);
	if (!box || box->state != BOX_RUNNING) {
		(void)error_set(&err, ERR_NOT_FOUND, 0, "no running box '%s'", req->box_id);
		send_failed(s, req->seq, req->box_id, &err);
		return;
	}
	r = boxes_freeze(&s->boxes, box, req->seq, req->frozen);
	if (r < 0)
		on_frozen(s, box, req->seq, r);
}

/* Ends the box if its agent does not accept a new stream. */
static void send_kept(struct server *s, struct box *box, uint32_t seq)
{
	struct engine_reply reply = reply_to(ENGINE_KEPT, seq, box->build.id);
	cleanup_close int stream = handover_new_stream(box->build.reattach_host);

	if (stream < 0) {
		log_warn("box %s accepts no stream (%s), ending it", box->build.id,
		         strerror(-stream));
		box_end(&s->boxes, box);
		return;
	}
	send_box(s, box, &reply, stream);
}

static void do_adopt(struct server *s, const struct engine_request *req)
{
	struct engine_reply reply = reply_to(ENGINE_ADOPTED, req->seq, req->box_id);
	struct error err = {0};
	struct box *box;

	/* A second stream would disconnect the daemon's own boxes. */
	if (!s->adoptable) {
		(void)error_set(&err, ERR_CONFLICT, 0, "there is nothing to adopt");
		send_failed(s, req->seq, req->box_id, &err);
		return;
	}
	s->adoptable = false;
	log_info("a new daemon takes over");
	LIST_FOREACH (box, &s->boxes.all, struct box, node)
		if (box_is_kept(box))
			send_kept(s, box, req->seq);
	send_reply(s, &reply, NULL, 0);
}

static void do_claim(struct server *s, const struct engine_request *req)
{
	struct box *box = boxes_find(&s->boxes, req->box_id);

	if (box)
		box->build.plan.flags &= ~(uint32_t)ENGINE_FLAG_SPARE;
}

static void do_reach(struct server *s, const struct engine_request *req)
{
	struct box *box = boxes_find(&s->boxes, req->box_id);

	if (box)
		box_set_reach(&s->boxes, box, req->flags & ENGINE_FLAG_BRIDGE, req->ranges);
}

static void do_end(struct server *s, const struct engine_request *req attr_unused)
{
	s->stopping = true;
}

/* request_check() rejects all others. */
static const struct {
	void (*handle)(struct server *s, const struct engine_request *req);
	bool while_stopping;
} handlers[ENGINE_OP_COUNT] = {
	[ENGINE_PROBE] = {do_probe, true},     [ENGINE_CREATE] = {do_create, false},
	[ENGINE_DESTROY] = {do_destroy, true}, [ENGINE_FREEZE] = {do_freeze, false},
	[ENGINE_ADOPT] = {do_adopt, false},    [ENGINE_END] = {do_end, true},
	[ENGINE_CLAIM] = {do_claim, true},     [ENGINE_REACH] = {do_reach, true},
};

/* The only request of a different size. */
static void on_zygote(struct server *s, const void *data, size_t len)
{
	static const char no_box[ENGINE_ID_LEN];
	struct engine_zygote req = {0};
	struct error err = {0};

	if (request_check_zygote(data, len, &req, &err) == 0 && s->stopping)
		(void)error_set(&err, ERR_UNAVAILABLE, 0, "the engine is stopping");
	if (error_is_set(&err) || zygotes_define(&s->boxes.zygotes, &req, &err) < 0)
		send_failed(s, req.seq, no_box, &err);
}

static void on_request(struct server *s)
{
	/* One byte more than the longest request, to detect a longer one. */
	char bytes[sizeof(struct engine_zygote) + 1];
	struct engine_request req;
	struct error err = {0};
	ssize_t n = fd_recv(s->sock, bytes, sizeof(bytes), NULL, NULL);

	/* The daemon was killed with unread replies; its last requests and EOF follow. */
	if (n == -ECONNRESET)
		return;
	if (n == 0) {
		log_debug("the daemon closed its end");
		drop_daemon(s);
		return;
	}
	if (n == sizeof(struct engine_zygote)) {
		on_zygote(s, bytes, (size_t)n);
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

static int watch_daemon(struct server *s, int sock)
{
	const struct timeval limit = {.tv_sec = SEND_TIMEOUT_SEC};
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = WATCH_SOCKET};
	int r = fd_set_nonblock(sock, false);

	if (r >= 0 && setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		r = -errno;
	if (r >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, sock, &event) < 0)
		r = -errno;
	return r;
}

/*
 * The engine is PID 1 of its namespace, so it reaps what others leave: children of a zygote that
 * died are in the pid namespace of a box, which cannot end before they are reaped.
 */
static int watch_children(struct server *s)
{
	static const int signals[] = {SIGCHLD};
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = WATCH_CHILDREN};

	s->children = fd_signalfd(signals, ARRAY_SIZE(signals));
	if (s->children < 0)
		return s->children;
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->children, &event) < 0 ? -errno : 0;
}

/* Besides the death signal, which the kernel resets whenever the engine acts as an agent. */
static int watch_guard(const struct server *s)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = WATCH_GUARD};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->host->guard, &event) < 0 ? -errno : 0;
}

/* Only its end: answers are read by who asked. */
static int watch_bridge(const struct server *s)
{
	struct epoll_event event = {.events = 0, .data.u64 = WATCH_BRIDGE};
	int fd = s->boxes.nets.bridge;

	return fd >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Nothing watches the rules of the host any more. */
static void on_bridge_lost(struct server *s)
{
	log_warn("millibox-bridge has ended: boxes with network bridge lose their interface");
	s->boxes.nets.bridge = fd_close(s->boxes.nets.bridge);
	boxes_disconnect(&s->boxes);
}

/* All processes of the engine's pid namespace end with it. */
static void attr_noreturn on_guard_lost(void)
{
	log_warn("the guard was killed");
	_exit(1);
}

static void on_child(struct server *s)
{
	struct signalfd_siginfo info;

	while (read(s->children, &info, sizeof(info)) > 0)
		s->orphans = true;
}

/* Stops at a child that has an event of its own, which is already due, and goes on after it. */
static void reap_orphans(struct server *s)
{
	while (s->orphans) {
		siginfo_t info = {0};

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			s->orphans = false;
		else if (boxes_have_child(&s->boxes, info.si_pid))
			return;
		else
			(void)waitpid(info.si_pid, NULL, WNOHANG);
	}
}

static int open_server(struct server *s, struct error *err)
{
	int r = s->epoll = fd_epoll();

	if (r >= 0)
		r = watch_children(s);
	if (r >= 0)
		r = watch_guard(s);
	if (r >= 0)
		r = watch_daemon(s, s->sock);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "event loop");
	return 0;
}

/* On only while there is no daemon; until then connections wait in the backlog. */
static int watch_handover(struct server *s, bool on)
{
	struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.u64 = WATCH_HANDOVER};
	int fd = s->host->handover.listener;

	if (!on)
		return epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL) < 0 ? -errno : 0;
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST ? -errno : 0;
}

static void accept_daemon(struct server *s)
{
	int sock = handover_accept(&s->host->handover, s->host->ids.mode);
	int r = sock;

	if (r >= 0)
		r = watch_daemon(s, sock);
	if (r < 0) {
		log_warn("rejected a connection of a new daemon (%s)", strerror(-r));
		(void)fd_close(sock);
		return;
	}
	s->sock = sock;
	s->adoptable = true;
	(void)!watch_handover(s, false);
}

static void on_event(struct server *s, uint64_t watch)
{
	if (watch == WATCH_HANDOVER && s->sock < 0)
		accept_daemon(s);
	else if (watch == WATCH_SOCKET && s->sock >= 0)
		on_request(s);
	else if (watch == WATCH_CHILDREN)
		on_child(s);
	else if (watch == WATCH_GUARD)
		on_guard_lost();
	else if (watch == WATCH_BRIDGE)
		on_bridge_lost(s);
	else if (watch < WATCH_SOCKET)
		boxes_on_event(&s->boxes, watch);
}

/* Without a daemon. Return: ms until the next check; -1: nothing to keep, or the lease is over. */
static int check_lease(struct server *s)
{
	uint64_t now = clock_us();
	uint64_t left_ms = now < s->lease_end_us ? (s->lease_end_us - now) / USEC_PER_MS + 1 : 0;

	if (boxes_end_others(&s->boxes) == 0 || s->host->handover.listener < 0 || left_ms == 0 ||
	    handover_is_lost(&s->host->instance) || watch_handover(s, true) < 0)
		return -1;
	return (int)(left_ms < HANDOVER_CHECK_MS ? left_ms : HANDOVER_CHECK_MS);
}

static int run_timers(struct server *s)
{
	int lease = s->sock < 0 && !s->stopping ? check_lease(s) : -1;
	int timeout;

	if (s->sock < 0 && lease < 0)
		s->stopping = true;
	if (s->stopping)
		boxes_end_all(&s->boxes);
	/* Only here are boxes and slots freed, after all events of the round. */
	timeout = boxes_work(&s->boxes);
	reap_orphans(s);
	return lease >= 0 && (timeout < 0 || lease < timeout) ? lease : timeout;
}

static int run_loop(struct server *s, struct error *err)
{
	struct epoll_event events[EVENTS_MAX];
	int timeout = -1;

	while (!s->stopping || !list_is_empty(&s->boxes.all)) {
		int n = epoll_wait(s->epoll, events, EVENTS_MAX, timeout);

		if (n < 0 && errno != EINTR)
			return error_set(err, ERR_SYSTEM, errno, "wait for events");
		for (int i = 0; i < n; i++)
			on_event(s, events[i].data.u64);
		timeout = run_timers(s);
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
		.on_frozen = on_frozen,
	};
	int r;

	*s = (struct server){.host = host, .sock = sock, .epoll = -1, .children = -1};
	r = open_server(s, err);
	if (r >= 0) {
		r = boxes_init(&s->boxes, host, s->epoll, &events);
		if (r >= 0)
			r = watch_bridge(s);
		r = r < 0 ? error_set(err, ERR_SYSTEM, -r, "network namespace of the engine")
		          : run_loop(s, err);
		boxes_done(&s->boxes);
	}
	(void)fd_close(s->sock);
	(void)fd_close(s->children);
	(void)fd_close(s->epoll);
	free(s);
	return r;
}
