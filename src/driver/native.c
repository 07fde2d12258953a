/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/native_internal.h"

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
#include <sys/wait.h>

/*
 * Theory of operation. One socket to the engine carries fixed-layout requests and replies. The
 * engine is trusted, but a malformed message ends its use (native_lose): guessing about a
 * privileged process is worse. The daemon exits, its supervisor restarts it, and the new engine
 * sweeps.
 *
 * The kill switch does not depend on the engine: the daemon kills a box through its cgroup.kill
 * descriptor (or its pidfd), then asks the engine to remove it. A stuck engine delays only the
 * cleanup.
 *
 * Required layers:
 *
 *   strict       LAYERS_STRICT, for root and other users. An ordinary user has cgroups and ids
 *                only by delegation; without them nothing runs.
 *   best-effort  LAYERS_BEST_EFFORT; rlimits replace missing groups, and the receipt says so.
 *
 * A box with network host lacks LAYER_NET in both, because a policy names it (driver.c).
 *
 * Engine layers are checked at CREATED, before a byte goes to the agent; for the agent's own
 * see link.c.
 */

/* Messages read before other events get a turn. */
#define NATIVE_RECV_ROUNDS 64
#define HANDOVER_LEN       80

struct native_waiting {
	struct list node; /* native.waiting */
	struct engine_request request;
};

static struct native *native(struct driver *d)
{
	return CONTAINER_OF(d, struct native, base);
}

static void drop_waiting(struct native *n)
{
	struct native_waiting *w;

	LIST_FOREACH (w, &n->waiting, struct native_waiting, node) {
		list_remove(&w->node);
		free(w);
	}
}

static void send_waiting(struct native *n)
{
	struct native_waiting *w;

	LIST_FOREACH (w, &n->waiting, struct native_waiting, node) {
		int r = fd_send(n->sock, &w->request, sizeof(w->request), NULL, 0);
		struct native_box *b;

		if (r == -EAGAIN)
			return;
		/* The next read detects a dead engine; until then no box keeps its network. */
		b = r < 0 && w->request.op == ENGINE_REACH ? map_get(n->by_id, w->request.box_id)
		                                           : NULL;
		if (b)
			native_box_unreached(b);
		list_remove(&w->node);
		free(w);
	}
}

static void update_events(struct native *n)
{
	if (n->watch)
		watch_set(n->watch, WATCH_READ | (list_is_empty(&n->waiting) ? 0 : WATCH_WRITE));
}

/* Return: the request for the network of the same box that waits, which @request replaces. */
static struct native_waiting *find_replaced(struct native *n, const struct engine_request *request)
{
	struct native_waiting *w;

	LIST_FOREACH (w, &n->waiting, struct native_waiting, node)
		if (request->op == ENGINE_REACH && w->request.op == ENGINE_REACH &&
		    str_equal(w->request.box_id, request->box_id))
			return w;
	return NULL;
}

/* Bounded: a box has one waiting request of each kind. */
static void add_waiting(struct native *n, const struct engine_request *request)
{
	struct native_waiting *w = find_replaced(n, request);

	if (!w) {
		w = NEW(struct native_waiting);
		list_append(&n->waiting, &w->node);
	}
	w->request = *request;
}

uint32_t native_send(struct native *n, struct engine_request *request)
{
	int r = -EAGAIN;

	if (n->sock < 0)
		return 0;
	if (++n->seq == 0) /* 0 means an event */
		n->seq = 1;
	request->seq = n->seq;
	if (list_is_empty(&n->waiting))
		r = fd_send(n->sock, request, sizeof(*request), NULL, 0);
	if (r == -EAGAIN) {
		add_waiting(n, request);
		update_events(n);
		return request->seq;
	}
	return r < 0 ? 0 : request->seq;
}

/* Reap the engine and report its end. A process closes its sockets a moment before it can be
 * reaped; waiting is fine here. */
static void describe_engine_end(struct native *n, struct error *err)
{
	int status = native_wait_engine(n->pid, USEC_PER_SEC / 10);

	if (status < 0) {
		(void)error_set(err, ERR_UNAVAILABLE, 0, "millibox-engine closed its socket");
		return;
	}
	n->pid = 0;
	(void)error_set(err, ERR_UNAVAILABLE, 0, "millibox-engine ended (%s %d)",
	                WIFSIGNALED(status) ? "signal" : "status",
	                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Return: 1: maybe more, 0: no more, -1 with *err: engine unusable. */
static int receive_reply(struct native *n, struct error *err)
{
	struct engine_reply reply;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t len = fd_recv(n->sock, &reply, sizeof(reply), fds, &count);

	if (len == -EAGAIN)
		return 0;
	/* The engine died with unread requests. The error comes once, before data that the next
	 * read returns. */
	if (len == -ECONNRESET)
		return 1;
	if (len == 0) {
		describe_engine_end(n, err);
		return -1;
	}
	if (len < 0)
		return error_set(err, ERR_PROTOCOL, (int)-len, "read from millibox-engine");
	if (native_reply(n, &reply, (size_t)len, fds, count, err) < 0)
		return -1;
	return n->sock >= 0;
}

static void on_socket(void *ctx, int events)
{
	struct native *n = ctx;
	struct error err = {0};
	int r = 1;

	if (events & WATCH_WRITE)
		send_waiting(n);
	for (int i = 0; r > 0 && i < NATIVE_RECV_ROUNDS; i++)
		r = receive_reply(n, &err);
	if (r < 0)
		native_lose(n, &err);
	update_events(n);
}

void native_lose(struct native *n, const struct error *err)
{
	struct native_box *b;

	if (n->sock < 0)
		return;
	watch_free(TAKE_PTR(n->watch));
	n->sock = fd_close(n->sock);
	drop_waiting(n);
	LIST_FOREACH (b, &n->boxes, struct native_box, node)
		native_box_orphaned(b, err);
	n->on_engine_lost(n->ctx, err);
}

/* Else an engine that keeps boxes would wait for another daemon. */
static void send_shutdown(struct native *n)
{
	struct engine_request request = {.op = ENGINE_END};

	(void)!fd_set_nonblock(n->sock, false);
	(void)native_send(n, &request);
}

/* The engine ends them; close their descriptors. */
static void settle_engine(struct native *n)
{
	struct native_kept *kept;

	LIST_FOREACH (kept, &n->kept, struct native_kept, node) {
		struct engine_request request = {.op = ENGINE_DESTROY};

		memcpy(request.box_id, kept->id, sizeof(request.box_id));
		log_info("box %s belongs to no session, ending it", kept->id);
		/* GONE will be ignored. 0: the engine just died. */
		(void)native_send(n, &request);
		native_kept_free(kept);
	}
}

static void native_settle(struct driver *d)
{
	if (native(d)->host_network)
		settle_engine(native(d)->host_network);
	settle_engine(native(d));
}

static void native_leave(struct driver *d)
{
	if (native(d)->host_network)
		native(d)->host_network->leaving = true;
	native(d)->leaving = true;
}

static bool has_kept(const struct native *n)
{
	const struct native_box *b;

	LIST_FOREACH (b, &n->boxes, struct native_box, node)
		if (b->base.spec.keep)
			return true;
	return !list_is_empty(&n->kept);
}

/* If it is not our child: poll, do not reap. */
static bool has_ended(const struct native *n)
{
	if (n->pid > 0)
		return native_wait_engine(n->pid, NATIVE_END_TIMEOUT_US) >= 0;
	return n->pidfd < 0 ||
	       native_wait_readable(n->pidfd, clock_us() + NATIVE_END_TIMEOUT_US) >= 0;
}

static void free_engine(struct native *n)
{
	struct native_kept *kept;
	struct native_box *b;
	bool stays;

	watch_free(n->watch);
	stays = n->leaving && has_kept(n);
	LIST_FOREACH (b, &n->boxes, struct native_box, node)
		native_box_free(b);
	if (!stays && n->sock >= 0 && n->base.caps.can_keep)
		send_shutdown(n);
	/* EOF makes the engine end all boxes, clean up and exit. */
	n->sock = fd_close(n->sock);
	if (!stays && !has_ended(n))
		log_warn("millibox-engine is slow to exit, ignoring");
	n->pidfd = fd_close(n->pidfd);
	LIST_FOREACH (kept, &n->kept, struct native_kept, node)
		native_kept_free(kept);
	drop_waiting(n);
	map_free(n->by_id);
	free(n);
}

/* A box of the second engine knows that one. */
static void native_serve(struct driver *d, const struct services *services)
{
	if (native(d)->host_network)
		driver_serve(&native(d)->host_network->base, services);
}

static void native_free(struct driver *d)
{
	if (native(d)->host_network)
		free_engine(native(d)->host_network);
	free_engine(native(d));
}

static const struct driver_ops native_ops = {
	.name = "native",
	.create = native_box_create,
	.adopt = native_box_adopt,
	.serve = native_serve,
	.settle = native_settle,
	.leave = native_leave,
	.freeze = native_box_freeze,
	.claim = native_box_claim,
	.reach = native_box_reach,
	.counters = native_box_counters,
	.traffic = native_box_traffic,
	.ask_denials = native_box_ask_denials,
	.settle_denials = native_box_settle_denials,
	.denials = native_box_denials,
	.destroy = native_box_destroy,
	.free = native_free,
};

static struct driver_caps caps_of(const struct engine_probe *probe, bool strict, bool keeps)
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

	return (struct driver_caps){
		.layers = probe->layers,
		.required_layers = strict ? LAYERS_STRICT : LAYERS_BEST_EFFORT,
		.networks = (probe->features & ENGINE_CAN_BRIDGE)
	                            ? BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE)
	                            : 0,
		.landlock_abi = probe->landlock_abi,
		.boxes_max = probe->boxes_max,
		.daemon_uid = probe->daemon_uid,
		.can_egress = (probe->features & ENGINE_CAN_EGRESS) != 0,
		.can_gateway = (probe->features & ENGINE_CAN_GATEWAY) != 0,
		.can_freeze = (probe->features & ENGINE_CAN_FREEZE) != 0,
		.can_keep = keeps && (probe->features & ENGINE_CAN_KEEP) != 0,
		.has_roots = (probe->features & ENGINE_CAN_IMAGE) != 0,
		.counts_usage = (probe->layers & LAYER_BIT(LAYER_CGROUP_MEMORY)) != 0,
		.cgroup = cgroups[probe->cgroup],
		.ids = ids[probe->ids],
	};
}

/* Counter files get a quarter of our descriptors. */
static size_t boxes_to_keep_counted(void)
{
	struct rlimit files = {0};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	return (size_t)files.rlim_cur / (4 * COUNTERS_ROWS);
}

struct driver *native_new(const struct native_config *config, int sock, pid_t pid,
                          const struct engine_probe *probe)
{
	struct native *n = NEW(struct native);

	n->base.ops = &native_ops;
	n->base.caps = caps_of(probe, config->strict, config->handover && config->lease_us > 0);
	native_filter_hash(config->agent_path, n->base.caps.filter_sha256);
	n->sock = sock;
	n->pid = pid;
	n->pidfd = -1;
	n->seq = NATIVE_PROBE_SEQ;
	n->counted_max = boxes_to_keep_counted();
	n->by_id = map_new();
	n->has_zygotes = (probe->features & ENGINE_CAN_ZYGOTE) != 0;
	n->on_engine_lost = config->on_engine_lost;
	n->ctx = config->ctx;
	list_init(&n->boxes);
	list_init(&n->kept);
	list_init(&n->waiting);
	return &n->base;
}

struct native *native_maker(struct native *n, const struct box_spec *spec)
{
	return spec->network == BOX_NETWORK_HOST ? n->host_network : n;
}

static struct driver *take_over(const struct native_config *config)
{
	struct native_engine engine;
	struct error err = {0};
	struct driver *d;

	if (!native_handover_find(config, &engine))
		return NULL;
	d = native_new(config, engine.sock, 0, &engine.probe);
	d->import_group = engine.import_group;
	native(d)->pidfd = engine.pidfd;
	if (native_handover_list(native(d), &err) == 0)
		return d;
	log_error("the boxes of an earlier daemon are lost", &err);
	driver_free(d);
	return NULL;
}

static int spawn_engine(const struct native_config *config, struct driver **ret_driver,
                        struct error *err)
{
	struct native_engine engine;

	*ret_driver = take_over(config);
	if (*ret_driver)
		return 0;
	if (native_start_engine(config, &engine, err) < 0)
		return error_wrap(err, "start '%.80s'", config->engine_path);
	*ret_driver = native_new(config, engine.sock, engine.pid, &engine.probe);
	(*ret_driver)->import_group = engine.import_group;
	return 0;
}

/*
 * The second engine differs from the first in what is left out: no zygotes, which would be in
 * another network than their boxes, no imports, no bridge. Images belong to the daemon, so to an
 * id of the first.
 */
static int spawn_host_network(const struct native_config *config, struct native *n,
                              struct error *err)
{
	char name[HANDOVER_LEN];
	struct native_config second = *config;
	struct driver *d;

	second.handover = NULL;
	if (config->handover && str_format(name, sizeof(name), "%s-host", config->handover) >= 0)
		second.handover = name;
	second.zygote_path = second.bridge_path = NULL;
	second.import_memory_bytes = 0;
	second.daemon_uid = n->base.caps.daemon_uid;
	if (!config->host_network) {
		native_handover_end(&second);
		return 0;
	}
	if (spawn_engine(&second, &d, err) < 0)
		return error_wrap(err, "network host");
	n->host_network = native(d);
	n->base.caps.networks |= BOX_NETWORK_BIT(BOX_NETWORK_HOST);
	return 0;
}

int native_spawn(const struct native_config *config, struct driver **ret_driver, struct error *err)
{
	struct native_config first = *config;

	first.host_network = false;
	if (spawn_engine(&first, ret_driver, err) < 0)
		return -1;
	if (spawn_host_network(config, native(*ret_driver), err) == 0)
		return 0;
	driver_leave(*ret_driver); /* what an earlier daemon left waits for the next one */
	driver_free(*ret_driver);
	*ret_driver = NULL;
	return -1;
}

static int attach_engine(struct native *n, struct loop *loop, struct error *err)
{
	int r = fd_set_nonblock(n->sock, true);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socket of the engine");
	n->loop = loop;
	n->watch = watch_new(loop, n->sock, on_socket, n);
	update_events(n);
	return 0;
}

int native_attach_loop(struct driver *d, struct loop *loop, struct error *err)
{
	struct native *n = native(d);

	if (attach_engine(n, loop, err) < 0)
		return -1;
	return n->host_network ? attach_engine(n->host_network, loop, err) : 0;
}
