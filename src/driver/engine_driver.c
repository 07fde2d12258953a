/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "io/loop.h"
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

/*
 * Theory of operation. One socket to the engine carries fixed-layout requests and replies. The
 * engine is trusted, but a malformed message ends its use (engine_driver_lose): guessing about a
 * privileged process is worse. If it is the default engine the daemon exits, its supervisor
 * restarts it, and the new engine sweeps. Any other engine is started again (engine_return.c).
 *
 * The kill switch does not depend on the engine: the daemon kills a box through its cgroup.kill
 * descriptor (or its pidfd), then asks the engine to remove it. A stuck engine delays only the
 * cleanup.
 *
 * Required layers of a native engine:
 *
 *   strict       LAYERS_STRICT, for root and other users. An ordinary user has cgroups and ids
 *                only by delegation; without them nothing runs.
 *   best-effort  LAYERS_BEST_EFFORT; rlimits replace missing groups, and the receipt says so.
 *
 * Another engine knows what its runtime can do: each box must have what the probe promised, and if
 * programs share the host's kernel, never less than LAYERS_LEAST.
 *
 * A box with network host lacks LAYER_NET in both, because a policy names it (driver.c).
 *
 * Engine layers are checked at CREATED, before a byte goes to the agent; for the agent's own
 * see link.c.
 */

#define LAYERS_LEAST                                                                               \
	(LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_MNT) | LAYER_BIT(LAYER_NET) |                      \
	 LAYER_BIT(LAYER_NO_NEW_PRIVS) | LAYER_BIT(LAYER_CAPS))

/* Messages read before other events get a turn. */
#define ENGINE_RECV_ROUNDS 64
#define HANDOVER_LEN       80

struct engine_waiting {
	struct list node; /* native.waiting */
	struct engine_request request;
};

static struct engine_driver *engine(struct driver *d)
{
	return CONTAINER_OF(d, struct engine_driver, base);
}

static void drop_waiting(struct engine_driver *e)
{
	struct engine_waiting *w;

	LIST_FOREACH (w, &e->waiting, struct engine_waiting, node) {
		list_remove(&w->node);
		free(w);
	}
}

static void send_waiting(struct engine_driver *e)
{
	struct engine_waiting *w;

	LIST_FOREACH (w, &e->waiting, struct engine_waiting, node) {
		int r = fd_send(e->sock, &w->request, sizeof(w->request), NULL, 0);
		struct engine_box *b;

		if (r == -EAGAIN)
			return;
		/* The next read detects a dead engine; until then no box keeps its network. */
		b = r < 0 && w->request.op == ENGINE_REACH ? map_get(e->by_id, w->request.box_id)
		                                           : NULL;
		if (b)
			engine_box_unreached(b);
		list_remove(&w->node);
		free(w);
	}
}

static void update_events(struct engine_driver *e)
{
	if (e->watch)
		watch_set(e->watch, WATCH_READ | (list_is_empty(&e->waiting) ? 0 : WATCH_WRITE));
}

/* Return: the request for the network of the same box that waits, which @request replaces. */
static struct engine_waiting *find_replaced(struct engine_driver *e,
                                            const struct engine_request *request)
{
	struct engine_waiting *w;

	LIST_FOREACH (w, &e->waiting, struct engine_waiting, node)
		if (request->op == ENGINE_REACH && w->request.op == ENGINE_REACH &&
		    str_equal(w->request.box_id, request->box_id))
			return w;
	return NULL;
}

/* Bounded: a box has one waiting request of each kind. */
static void add_waiting(struct engine_driver *e, const struct engine_request *request)
{
	struct engine_waiting *w = find_replaced(e, request);

	if (!w) {
		w = NEW(struct engine_waiting);
		list_append(&e->waiting, &w->node);
	}
	w->request = *request;
}

uint32_t engine_driver_send(struct engine_driver *e, struct engine_request *request)
{
	int r = -EAGAIN;

	if (e->sock < 0)
		return 0;
	if (++e->seq == 0) /* 0 means an event */
		e->seq = 1;
	request->seq = e->seq;
	if (list_is_empty(&e->waiting))
		r = fd_send(e->sock, request, sizeof(*request), NULL, 0);
	if (r == -EAGAIN) {
		add_waiting(e, request);
		update_events(e);
		return request->seq;
	}
	return r < 0 ? 0 : request->seq;
}

/* Reap the engine and report its end. A process closes its sockets a moment before it can be
 * reaped; waiting is fine here. */
static void describe_engine_end(struct engine_driver *e, struct error *err)
{
	int status = engine_wait_end(e->pid, USEC_PER_SEC / 10);

	if (status < 0) {
		(void)error_set(err, ERR_UNAVAILABLE, 0, "millibox-engine closed its socket");
		return;
	}
	e->pid = 0;
	(void)error_set(err, ERR_UNAVAILABLE, 0, "millibox-engine ended (%s %d)",
	                WIFSIGNALED(status) ? "signal" : "status",
	                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Return: 1: maybe more, 0: no more, -1 with *err: engine unusable. */
static int receive_reply(struct engine_driver *e, struct error *err)
{
	struct engine_reply reply;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t len = fd_recv(e->sock, &reply, sizeof(reply), fds, &count);

	if (len == -EAGAIN)
		return 0;
	/* The engine died with unread requests. The error comes once, before data that the next
	 * read returns. */
	if (len == -ECONNRESET)
		return 1;
	if (len == 0) {
		describe_engine_end(e, err);
		return -1;
	}
	if (len < 0)
		return error_set(err, ERR_PROTOCOL, (int)-len, "read from millibox-engine");
	if (engine_reply(e, &reply, (size_t)len, fds, count, err) < 0)
		return -1;
	return e->sock >= 0;
}

static void on_socket(void *ctx, int events)
{
	struct engine_driver *e = ctx;
	struct error err = {0};
	int r = 1;

	if (events & WATCH_WRITE)
		send_waiting(e);
	for (int i = 0; r > 0 && i < ENGINE_RECV_ROUNDS; i++)
		r = receive_reply(e, &err);
	if (r < 0)
		engine_driver_lose(e, &err);
	update_events(e);
}

void engine_driver_drop(struct engine_driver *e, const struct error *err)
{
	struct engine_box *b;

	watch_free(TAKE_PTR(e->watch));
	e->sock = fd_close(e->sock);
	e->is_probing = false;
	drop_waiting(e);
	LIST_FOREACH (b, &e->boxes, struct engine_box, node)
		engine_box_orphaned(b, err);
}

void engine_driver_lose(struct engine_driver *e, const struct error *err)
{
	if (e->sock < 0)
		return;
	if (!e->on_engine_lost) {
		engine_return_later(e, err);
		return;
	}
	engine_driver_drop(e, err);
	e->on_engine_lost(e->ctx, err);
}

void engine_driver_notice_end(struct engine_driver *e)
{
	char byte;

	if (e->starter && e->sock >= 0 &&
	    recv(e->sock, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0)
		on_socket(e, WATCH_READ);
}

/* Else an engine that keeps boxes would wait for another daemon. */
static void send_shutdown(struct engine_driver *e)
{
	struct engine_request request = {.op = ENGINE_END};

	(void)!fd_set_nonblock(e->sock, false);
	(void)engine_driver_send(e, &request);
}

/* The engine ends them; close their descriptors. */
static void settle_engine(struct engine_driver *e)
{
	struct engine_kept *kept;

	LIST_FOREACH (kept, &e->kept, struct engine_kept, node) {
		struct engine_request request = {.op = ENGINE_DESTROY};

		memcpy(request.box_id, kept->id, sizeof(request.box_id));
		log_info("box %s belongs to no session, ending it", kept->id);
		/* GONE will be ignored. 0: the engine just died. */
		(void)engine_driver_send(e, &request);
		engine_kept_free(kept);
	}
}

static void engine_driver_settle(struct driver *d)
{
	if (engine(d)->host_network)
		settle_engine(engine(d)->host_network);
	settle_engine(engine(d));
}

static void engine_driver_leave(struct driver *d)
{
	if (engine(d)->host_network)
		engine(d)->host_network->leaving = true;
	engine(d)->leaving = true;
}

static bool has_kept(const struct engine_driver *e)
{
	const struct engine_box *b;

	LIST_FOREACH (b, &e->boxes, struct engine_box, node)
		if (b->base.spec.keep)
			return true;
	return !list_is_empty(&e->kept);
}

/* If it is not our child: poll, do not reap. */
static bool has_ended(const struct engine_driver *e)
{
	if (e->pid > 0)
		return engine_wait_end(e->pid, ENGINE_END_TIMEOUT_US) >= 0;
	return e->pidfd < 0 ||
	       engine_wait_readable(e->pidfd, clock_us() + ENGINE_END_TIMEOUT_US) >= 0;
}

static void free_engine(struct engine_driver *e)
{
	struct engine_kept *kept;
	struct engine_box *b;
	bool stays;

	engine_return_stop(e);
	watch_free(e->watch);
	stays = e->leaving && has_kept(e);
	LIST_FOREACH (b, &e->boxes, struct engine_box, node)
		engine_box_free(b);
	if (!stays && e->sock >= 0 && e->base.caps.can_keep)
		send_shutdown(e);
	/* EOF makes the engine end all boxes, clean up and exit. */
	e->sock = fd_close(e->sock);
	if (!stays && !has_ended(e))
		log_warn("millibox-engine is slow to exit, ignoring");
	e->pidfd = fd_close(e->pidfd);
	LIST_FOREACH (kept, &e->kept, struct engine_kept, node)
		engine_kept_free(kept);
	drop_waiting(e);
	map_free(e->by_id);
	free(e->name);
	free(e);
}

/* A box of the second engine knows that one. */
static void engine_driver_serve(struct driver *d, const struct services *services)
{
	if (engine(d)->host_network)
		driver_serve(&engine(d)->host_network->base, services);
}

static void engine_driver_free(struct driver *d)
{
	if (engine(d)->host_network)
		free_engine(engine(d)->host_network);
	free_engine(engine(d));
}

static const struct driver_ops engine_driver_ops = {
	.create = engine_box_create,
	.adopt = engine_box_adopt,
	.serve = engine_driver_serve,
	.settle = engine_driver_settle,
	.leave = engine_driver_leave,
	.freeze = engine_box_freeze,
	.claim = engine_box_claim,
	.reach = engine_box_reach,
	.counters = engine_box_counters,
	.traffic = engine_box_traffic,
	.ask_denials = engine_box_ask_denials,
	.settle_denials = engine_box_settle_denials,
	.denials = engine_box_denials,
	.destroy = engine_box_destroy,
	.free = engine_driver_free,
};

static uint32_t required_of(const struct engine_driver *e, const struct engine_probe *probe)
{
	if (e->is_native)
		return e->strict ? LAYERS_STRICT : LAYERS_BEST_EFFORT;
	return probe->layers | (probe->grade == ENGINE_GRADE_NAMESPACE ? LAYERS_LEAST : 0);
}

static_assert((int)BOX_GRADE_NAMESPACE == (int)ENGINE_GRADE_NAMESPACE &&
                      (int)BOX_GRADE_GVISOR == (int)ENGINE_GRADE_GVISOR &&
                      (int)BOX_GRADE_VM == (int)ENGINE_GRADE_VM,
              "grades are passed through");
static_assert(DRIVER_RUNTIME_LEN == ENGINE_RUNTIME_LEN && DRIVER_RELEASE_LEN == ENGINE_RELEASE_LEN,
              "so is who makes the boxes");

static struct driver_caps caps_of(const struct engine_driver *e, const struct engine_probe *probe)
{
	static const char *const cgroups[ENGINE_CGROUP_COUNT] = {
		[ENGINE_CGROUP_NONE] = "none",
		[ENGINE_CGROUP_V1] = "v1",
		[ENGINE_CGROUP_V2] = "v2",
		[ENGINE_CGROUP_HYBRID] = "hybrid",
	};
	static const char *const ids[ENGINE_IDS_COUNT] = {
		[ENGINE_IDS_RANGE] = "range",
		[ENGINE_IDS_SUBID] = "subid",
		[ENGINE_IDS_SINGLE] = "single",
	};
	const uint32_t can = probe->features;
	struct driver_caps caps = {
		.layers = probe->layers,
		.required_layers = required_of(e, probe),
		.grade = (enum box_grade)probe->grade,
		.networks = can & ENGINE_CAN_BRIDGE ? BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE) : 0,
		.landlock_abi = probe->landlock_abi,
		.boxes_max = probe->boxes_max,
		.daemon_uid = probe->daemon_uid,
		.can_egress = (can & ENGINE_CAN_EGRESS) != 0,
		.can_gateway = (can & ENGINE_CAN_GATEWAY) != 0,
		.can_freeze = (can & ENGINE_CAN_FREEZE) != 0,
		.can_keep = e->keeps && (can & ENGINE_CAN_KEEP) != 0,
		.has_roots = (can & ENGINE_CAN_IMAGE) != 0,
		.has_packages = (can & ENGINE_CAN_PACKAGES) != 0,
		.has_zygotes = (can & ENGINE_CAN_ZYGOTE) != 0,
		.counts_usage = (probe->layers & LAYER_BIT(LAYER_CGROUP_MEMORY)) != 0,
		.cgroup = cgroups[probe->cgroup],
		.ids = ids[probe->ids],
	};

	memcpy(caps.filter_sha256, e->base.caps.filter_sha256, sizeof(caps.filter_sha256));
	memcpy(caps.runtime, probe->runtime, sizeof(caps.runtime));
	memcpy(caps.release, probe->release, sizeof(caps.release));
	return caps;
}

/* A native engine may lack what the setting requires: the daemon's start says so. */
int engine_driver_probed(struct engine_driver *e, const struct engine_probe *probe,
                         struct error *err)
{
	e->base.caps = caps_of(e, probe);
	e->has_zygotes = e->base.caps.has_zygotes;
	memset(e->zygotes, 0, sizeof(e->zygotes));
	return e->on_engine_lost ? 0
	                         : driver_check_layers(e->base.caps.layers,
	                                               e->base.caps.required_layers, err);
}

/* Counter files get a quarter of our descriptors. */
static size_t boxes_to_keep_counted(void)
{
	struct rlimit files = {0};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	return (size_t)files.rlim_cur / (4 * COUNTERS_ROWS);
}

/* Without an engine yet. */
static struct engine_driver *new_driver(const struct engine_config *config)
{
	struct engine_driver *e = NEW(struct engine_driver);

	e->name = xstrdup(config->name ? config->name : "");
	e->base.ops = &engine_driver_ops;
	e->base.name = e->name;
	engine_filter_hash(config->agent_path, e->base.caps.filter_sha256);
	e->is_native = config->is_native;
	e->strict = config->strict;
	e->keeps = config->handover && config->lease_us > 0;
	e->sock = e->pidfd = -1;
	e->seq = ENGINE_PROBE_SEQ;
	e->counted_max = boxes_to_keep_counted();
	e->by_id = map_new();
	e->starter = config->starter;
	e->number = config->number;
	e->on_engine_lost = config->on_engine_lost;
	e->owner_uid = config->daemon_uid;
	e->ctx = config->ctx;
	list_init(&e->boxes);
	list_init(&e->kept);
	list_init(&e->waiting);
	return e;
}

struct driver *engine_driver_new(const struct engine_config *config, int sock, pid_t pid,
                                 const struct engine_probe *probe)
{
	struct engine_driver *e = new_driver(config);
	struct error err = {0};

	e->sock = sock;
	e->pid = pid;
	if (engine_driver_probed(e, probe, &err) < 0)
		engine_return_later(e, &err);
	else
		breaker_close(&e->base.breaker, clock_us());
	return &e->base;
}

struct engine_driver *engine_driver_maker(struct engine_driver *e, const struct box_spec *spec)
{
	return spec->network == BOX_NETWORK_HOST ? e->host_network : e;
}

static struct driver *take_over(const struct engine_config *config)
{
	struct engine_process process;
	struct error err = {0};
	struct driver *d;

	if (!engine_handover_find(config, &process))
		return NULL;
	d = engine_driver_new(config, process.sock, 0, &process.probe);
	d->import_group = process.import_group;
	engine(d)->pidfd = process.pidfd;
	if (engine_handover_list(engine(d), &err) == 0)
		return d;
	log_error("the boxes of an earlier daemon are lost", &err);
	driver_free(d);
	return NULL;
}

/* One that is started again is not needed for the daemon's start. */
static struct driver *start_later(const struct engine_config *config, const struct error *why)
{
	struct engine_driver *e = new_driver(config);

	engine_return_later(e, why);
	return &e->base;
}

static int start_process(const struct engine_config *config, struct engine_process *ret_process,
                         struct error *err)
{
	int r = config->starter ? engine_start_by(config->starter, config->number, ret_process, err)
	                        : engine_start(config, ret_process, err);

	/* Who asks for an engine that is started again is no operator. */
	return r < 0 && !config->starter ? error_wrap(err, "start '%.80s'", config->program) : r;
}

static int spawn_engine(const struct engine_config *config, struct driver **ret_driver,
                        struct error *err)
{
	struct engine_process process;

	*ret_driver = take_over(config);
	if (*ret_driver)
		return 0;
	if (start_process(config, &process, err) < 0) {
		if (!config->starter)
			return -1;
		*ret_driver = start_later(config, err);
		error_clear(err);
		return 0;
	}
	*ret_driver = engine_driver_new(config, process.sock, process.pid, &process.probe);
	engine(*ret_driver)->pidfd = process.pidfd;
	(*ret_driver)->import_group = process.import_group;
	return 0;
}

/* Images belong to the daemon, so to an id of the first engine. */
static int spawn_host_network(const struct engine_config *config, struct engine_driver *e,
                              struct error *err)
{
	struct engine_config second = {.program = config->program,
	                               .runtime_dir = config->runtime_dir};
	char name[HANDOVER_LEN];
	struct driver *d;

	if (config->host_network)
		second = *config->host_network;
	if (config->handover && str_format(name, sizeof(name), "%s-host", config->handover) >= 0)
		second.handover = name;
	second.daemon_uid = e->base.caps.daemon_uid;
	if (!config->host_network) {
		engine_handover_end(&second);
		return 0;
	}
	if (spawn_engine(&second, &d, err) < 0)
		return error_wrap(err, "network host");
	e->host_network = engine(d);
	e->base.caps.networks |= BOX_NETWORK_BIT(BOX_NETWORK_HOST);
	return 0;
}

int engine_driver_spawn(const struct engine_config *config, struct driver **ret_driver,
                        struct error *err)
{
	if (spawn_engine(config, ret_driver, err) < 0)
		return -1;
	if (config->starter || spawn_host_network(config, engine(*ret_driver), err) == 0)
		return 0;
	driver_leave(*ret_driver); /* what an earlier daemon left waits for the next one */
	driver_free(*ret_driver);
	*ret_driver = NULL;
	return -1;
}

int engine_driver_listen(struct engine_driver *e, struct error *err)
{
	int r = fd_set_nonblock(e->sock, true);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socket of the engine");
	e->watch = watch_new(e->loop, e->sock, on_socket, e);
	update_events(e);
	return 0;
}

static int attach_engine(struct engine_driver *e, struct loop *loop, struct error *err)
{
	e->loop = loop;
	if (e->starter)
		engine_return_attach(e);
	return e->sock < 0 ? 0 : engine_driver_listen(e, err);
}

int engine_driver_attach_loop(struct driver *d, struct loop *loop, struct error *err)
{
	struct engine_driver *e = engine(d);

	if (attach_engine(e, loop, err) < 0)
		return -1;
	return e->host_network ? attach_engine(e->host_network, loop, err) : 0;
}
