/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "driver/traffic.h"
#include "io/loop.h"
#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A program that fills its file system should get ENOSPC, not SIGXFSZ from RLIMIT_FSIZE, which
 * would hide the cause. So the limit is slightly higher, and stops only sparse files.
 */
#define FSIZE_SLACK_BYTES (1024 * 1024)

#define STATE_BIT(state) (1U << (state))
#define STATES_ALIVE                                                                               \
	(STATE_BIT(ENGINE_BOX_CREATING) | STATE_BIT(ENGINE_BOX_BUILDING) |                         \
	 STATE_BIT(ENGINE_BOX_READY))

static struct engine_driver *engine_of(const struct engine_box *b)
{
	return CONTAINER_OF(b->base.driver, struct engine_driver, base);
}

static struct engine_box *engine_box(struct box *box)
{
	return CONTAINER_OF(box, struct engine_box, base);
}

static bool is_in(const struct engine_box *b, unsigned states)
{
	return (STATE_BIT(b->state) & states) != 0;
}

static void set_state(struct engine_box *b, enum engine_box_state next)
{
	static const unsigned before[ENGINE_BOX_STATE_COUNT] = {
		[ENGINE_BOX_BUILDING] = STATE_BIT(ENGINE_BOX_CREATING),
		[ENGINE_BOX_READY] = STATE_BIT(ENGINE_BOX_BUILDING),
		[ENGINE_BOX_LOST] = STATES_ALIVE,
		[ENGINE_BOX_DESTROYING] = STATES_ALIVE | STATE_BIT(ENGINE_BOX_LOST),
		[ENGINE_BOX_GONE] = STATE_BIT(ENGINE_BOX_DESTROYING),
	};

	assert(is_in(b, before[next]));
	b->state = next;
}

/*
 * The kill switch needs no other process: cgroup.kill ends every process of the box, including
 * forks in flight. Without it, killing PID 1 ends the pid namespace; the daemon may signal it only
 * as the same user, else the engine's DESTROY does it.
 */
static void kill_box(struct engine_box *b)
{
	int kill_fd = b->fds[ENGINE_FD_KILL];
	int pidfd = b->fds[ENGINE_FD_PIDFD];

	if (kill_fd >= 0 && write(kill_fd, "1", 1) == 1)
		return;
	if (pidfd >= 0 && fd_pidfd_kill(pidfd, SIGKILL) >= 0)
		return;
	box_log(&b->base, LOG_LEVEL_DEBUG, "leaving the kill to the engine");
}

static void finish_box(void *arg)
{
	struct engine_box *b = arg;

	b->base.events.on_gone(b->base.events.ctx);
	engine_box_free(b);
}

/* Never calls on_gone inside box_destroy. */
static void end_box(struct engine_box *b)
{
	set_state(b, ENGINE_BOX_GONE);
	timer_stop(b->timer);
	loop_defer(engine_of(b)->loop, finish_box, b);
}

static void lose_box(struct engine_box *b, const struct error *err)
{
	if (!is_in(b, STATES_ALIVE))
		return;
	set_state(b, ENGINE_BOX_LOST);
	timer_stop(b->timer);
	link_close(b->base.link);
	kill_box(b);
	b->base.events.on_lost(b->base.events.ctx, err);
}

static void lose_unreached(void *arg)
{
	struct error err = {0};

	(void)error_set(&err, ERR_AGENT_LOST, 0, "its network could not be changed");
	lose_box(arg, &err);
}

/* It must not go on with the network that it has. The owner may be walking its boxes: on_lost comes
 * from the loop. */
void engine_box_unreached(struct engine_box *b)
{
	if (!is_in(b, STATES_ALIVE))
		return;
	kill_box(b);
	loop_cancel(engine_of(b)->loop, lose_unreached, b);
	loop_defer(engine_of(b)->loop, lose_unreached, b);
}

static void on_overdue(void *ctx)
{
	struct engine_box *b = ctx;
	struct error err = {0};

	/* A slowly dying program blocks only its own box's place. */
	if (b->state == ENGINE_BOX_DESTROYING) {
		box_log(&b->base, LOG_LEVEL_WARN, "is slow to end, waiting");
		return;
	}
	(void)error_set(&err, ERR_AGENT_LOST, 0, "the agent %s",
	                b->adopted ? "does not respond" : "ended before HELLO");
	lose_box(b, &err);
}

static void on_hello(void *ctx, const struct msg_hello *hello)
{
	struct engine_box *b = ctx;
	struct error err = {0};

	b->base.layers |= hello->layers;
	b->base.vouched &= ~hello->layers; /* the agent has measured them */
	if (driver_check_layers(b->base.layers, b->required, &err) < 0) {
		lose_box(b, &err);
		return;
	}
	timer_stop(b->timer);
	/* Earlier the socket does not listen. */
	box_open_gateway(&b->base, b->fds[ENGINE_FD_GATEWAY]);
	set_state(b, ENGINE_BOX_READY);
	b->base.events.on_ready(b->base.events.ctx);
}

/* The first program decides; the engine's reply was a promise. */
static void on_injected(void *ctx, bool injected)
{
	struct engine_box *b = ctx;

	if (b->base.has_started)
		return;
	b->base.has_started = true;
	if (injected)
		b->base.start = BOX_START_ZYGOTE;
	else if (b->base.start == BOX_START_ZYGOTE)
		b->base.start = BOX_START_LOST;
}

/*
 * A box that ends while being built closes its stream before the engine's reason ("mount /proc:
 * ...") arrives: wait for it. An adopted box was built long ago.
 */
static void on_link_lost(void *ctx, const struct error *err)
{
	struct engine_box *b = ctx;

	/* Its boxes die with an engine, perhaps before its end was read. */
	engine_driver_notice_end(engine_of(b));
	if (b->state == ENGINE_BOX_BUILDING && !b->adopted && err->code == ERR_AGENT_LOST &&
	    b->engine_has)
		timer_start(b->timer, ENGINE_REASON_TIMEOUT_US);
	else
		lose_box(b, err);
}

static struct engine_box *new_box(struct engine_driver *e, const struct box_spec *spec,
                                  const struct box_events *events)
{
	struct engine_box *b = NEW(struct engine_box);

	b->base = (struct box){.driver = &e->base, .events = *events, .spec = *spec};
	(void)box_rules_ref(b->base.spec.rules);
	(void)box_rules_ref(b->base.spec.tools);
	b->required = driver_required(&e->base, spec);
	b->link_events = (struct link_events){.ctx = b,
	                                      .on_hello = on_hello,
	                                      .on_injected = on_injected,
	                                      .on_lost = on_link_lost};
	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++)
		b->fds[i] = -1;
	b->refusals.sock = -1;
	counters_files_init(&b->counters);
	b->timer = timer_new(e->loop, on_overdue, b);
	b->base.link = link_new(e->loop, b->base.spec.id, &b->link_events, &b->base.events);
	link_set_request(b->base.link, b->base.spec.request_id);
	list_append(&e->boxes, &b->node);
	e->boxes_count++;
	return b;
}

void engine_box_free(struct engine_box *b)
{
	struct engine_driver *e = engine_of(b);

	if (b->engine_has && !(e->leaving && b->base.spec.keep))
		kill_box(b);
	loop_cancel(e->loop, finish_box, b);
	loop_cancel(e->loop, lose_unreached, b);
	(void)map_remove(e->by_id, b->base.spec.id);
	list_remove(&b->node);
	e->boxes_count--;
	egress_port_close(b->base.egress);
	gateway_port_close(b->base.gateway);
	box_rules_unref(b->base.spec.rules);
	box_rules_unref(b->base.spec.tools);
	link_free(b->base.link);
	timer_free(b->timer);
	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++)
		(void)fd_close(b->fds[i]);
	counters_files_close(&b->counters);
	free(b);
}

static struct engine_request request_for(const struct engine_box *b, enum engine_op op)
{
	struct engine_request request = {.op = op};

	static_assert(sizeof(request.box_id) == sizeof(b->base.spec.id), "ids are passed through");
	/* NUL-padded, for the engine. */
	memcpy(request.box_id, b->base.spec.id, strlen(b->base.spec.id));
	return request;
}

static_assert(BOX_RANGES_ALL == ENGINE_RANGES_ALL && BOX_RANGES_NAMED == ENGINE_RANGES_NAMED,
              "passed through");

static struct engine_request create_request(const struct engine_box *b)
{
	const struct box_limits *limits = &b->base.spec.limits;
	struct engine_request request = request_for(b, ENGINE_CREATE);

	request.limits = (struct engine_limits){.memory_bytes = limits->memory_bytes,
	                                        .workspace_bytes = limits->workspace_bytes,
	                                        .tmp_bytes = limits->tmp_bytes,
	                                        .shm_bytes = limits->shm_bytes,
	                                        .workspace_inodes = limits->workspace_inodes,
	                                        .tmp_inodes = limits->tmp_inodes,
	                                        .pids = limits->pids,
	                                        .cpu_millicores = limits->cpu_millicores};
	if (b->required & LAYER_BIT(LAYER_CGROUP_MEMORY))
		request.flags |= ENGINE_FLAG_REQUIRE_CGROUP;
	if (b->base.spec.exec_tmp)
		request.flags |= ENGINE_FLAG_EXEC_TMP;
	if (b->base.spec.keep)
		request.flags |= ENGINE_FLAG_KEEP;
	if (b->base.spec.keep && b->base.spec.spare)
		request.flags |= ENGINE_FLAG_SPARE;
	static_assert(sizeof(request.root) == sizeof(b->base.spec.root), "so are roots");
	if (b->base.spec.root[0])
		request.flags |= ENGINE_FLAG_IMAGE;
	if (b->base.spec.network == BOX_NETWORK_ALLOWLIST)
		request.flags |= ENGINE_FLAG_EGRESS;
	if (b->base.spec.network == BOX_NETWORK_BRIDGE) {
		request.flags |= ENGINE_FLAG_BRIDGE;
		request.ranges = b->base.spec.ranges;
	}
	if (b->base.spec.network == BOX_NETWORK_HOST)
		request.flags |= ENGINE_FLAG_HOST_NETWORK;
	if (b->base.spec.tools)
		request.flags |= ENGINE_FLAG_GATEWAY;
	memcpy(request.root, b->base.spec.root, strlen(b->base.spec.root));
	static_assert(sizeof(request.packages) == sizeof(b->base.spec.packages), "and packages");
	if (b->base.spec.packages[0])
		request.flags |= ENGINE_FLAG_PACKAGES;
	memcpy(request.packages, b->base.spec.packages, strlen(b->base.spec.packages));
	static_assert(sizeof(request.tenant) == sizeof(b->base.spec.tenant), "and tenants");
	memcpy(request.tenant, b->base.spec.tenant, strlen(b->base.spec.tenant));
	request.zygote = (uint8_t)engine_zygote_of(engine_of(b), &b->base.spec);
	return request;
}

/* It was taken over from an earlier daemon, which had another id: in its boxes, images and packages
 * would belong to an unknown user. */
static bool knows_owner(const struct engine_driver *e, const struct box_spec *spec)
{
	return (!spec->root[0] && !spec->packages[0]) || !e->owner_uid ||
	       e->base.caps.daemon_uid == e->owner_uid;
}

static int refuse_owner(const struct engine_driver *e, const struct box_spec *spec,
                        struct error *err)
{
	bool is_host = spec->network == BOX_NETWORK_HOST;

	return error_set(err, ERR_UNAVAILABLE, 0,
	                 "%s%s has no images and packages until its sessions have ended and the "
	                 "daemon was restarted",
	                 is_host ? "network host" : "engine ", is_host ? "" : e->name);
}

int engine_box_create(struct driver *d, const struct box_spec *spec,
                      const struct box_events *events, struct box **ret_box, struct error *err)
{
	struct engine_driver *e =
		engine_driver_maker(CONTAINER_OF(d, struct engine_driver, base), spec);
	struct engine_request request;
	struct engine_box *b;

	if (!e)
		return error_set(err, ERR_UNAVAILABLE, 0, "network host is not enabled");
	if (!knows_owner(e, spec))
		return refuse_owner(e, spec, err);
	assert(e->loop);
	if (e->boxes_count >= e->base.caps.boxes_max)
		return error_set(err, ERR_BUSY, 0, "all %u boxes are in use",
		                 e->base.caps.boxes_max);
	b = new_box(e, spec, events);
	if (map_put(e->by_id, spec->id, b) < 0) {
		/* Another box has this id: keep that one. */
		b->base.spec.id[0] = '\0';
		engine_box_free(b);
		return error_set(err, ERR_CONFLICT, 0, "box %s exists", spec->id);
	}
	request = create_request(b);
	b->create_seq = engine_driver_send(e, &request);
	if (b->create_seq == 0) {
		engine_box_free(b);
		return error_set(err, ERR_UNAVAILABLE, 0, "millibox-engine is gone");
	}
	b->engine_has = true;
	*ret_box = &b->base;
	return 0;
}

static void ask_to_freeze(struct engine_box *b)
{
	struct engine_request request = request_for(b, ENGINE_FREEZE);

	request.frozen = b->freeze_wanted;
	b->freeze_asked = b->freeze_wanted;
	b->freeze_seq = engine_driver_send(engine_of(b), &request);
}

/* One request at a time; the reply handles later changes. */
int engine_box_freeze(struct box *box, bool frozen, struct error *err)
{
	struct engine_box *b = engine_box(box);

	/* A box adopted frozen is ready only once thawed. */
	if (b->state != ENGINE_BOX_READY && !(b->adopted && b->state == ENGINE_BOX_BUILDING))
		return error_set(err, ERR_CONFLICT, 0, "box %s is not ready", box->spec.id);
	b->freeze_wanted = frozen;
	if (b->freeze_seq)
		return 1;
	ask_to_freeze(b);
	if (b->freeze_seq == 0)
		return error_set(err, ERR_UNAVAILABLE, 0, "millibox-engine is gone");
	return 1;
}

void engine_box_claim(struct box *box)
{
	struct engine_box *b = engine_box(box);
	struct engine_request request = request_for(b, ENGINE_CLAIM);

	/* 0: the engine just died; reading its socket reports it. */
	(void)!engine_driver_send(engine_of(b), &request);
}

static void send_reach(struct engine_box *b)
{
	struct engine_request request = request_for(b, ENGINE_REACH);

	if (b->base.spec.network == BOX_NETWORK_BRIDGE) {
		request.flags = ENGINE_FLAG_BRIDGE;
		request.ranges = b->base.spec.ranges;
	}
	if (engine_driver_send(engine_of(b), &request) == 0)
		engine_box_unreached(b);
}

void engine_box_reach(struct box *box)
{
	struct engine_box *b = engine_box(box);

	if (!b->engine_has ||
	    is_in(b, STATE_BIT(ENGINE_BOX_DESTROYING) | STATE_BIT(ENGINE_BOX_GONE)))
		return;
	/* The counters go with the interface. */
	if (box->spec.network != BOX_NETWORK_BRIDGE)
		b->had_traffic = traffic_read(b->fds[ENGINE_FD_NETWORK], &b->traffic_last);
	send_reach(b);
}

void engine_box_frozen(struct engine_box *b)
{
	b->freeze_seq = 0;
	if (b->adopted && b->state == ENGINE_BOX_BUILDING && !b->freeze_wanted)
		timer_start(b->timer, ENGINE_HELLO_TIMEOUT_US);
	if (!is_in(b, STATES_ALIVE))
		return;
	/* 0 again: the engine just died. */
	if (b->freeze_wanted != b->freeze_asked)
		ask_to_freeze(b);
	else if (b->base.events.on_frozen)
		b->base.events.on_frozen(b->base.events.ctx);
}

void engine_box_counters(struct box *box, enum counters_for purpose,
                         struct box_counters *ret_counters)
{
	struct engine_box *b = engine_box(box);
	struct engine_driver *e = engine_of(b);
	const int dirs[COUNTERS_DIRS] = {
		[COUNTERS_MEMORY] = b->fds[ENGINE_FD_MEMORY],
		[COUNTERS_PIDS] = b->fds[ENGINE_FD_PIDS],
		[COUNTERS_CPU] = b->fds[ENGINE_FD_CPU],
	};

	counters_read(dirs, e->boxes_count <= e->counted_max ? &b->counters : NULL, purpose,
	              &e->absent, ret_counters);
}

void engine_box_ask_denials(struct box *box)
{
	refusals_ask(&engine_box(box)->refusals);
}

bool engine_box_settle_denials(struct box *box, uint64_t wait_us)
{
	return refusals_settle(&engine_box(box)->refusals, wait_us);
}

size_t engine_box_denials(struct box *box, struct box_denial *ret, size_t max)
{
	return refusals_take(&engine_box(box)->refusals, ret, max);
}

bool engine_box_traffic(struct box *box, struct box_network_usage *ret)
{
	struct engine_box *b = engine_box(box);

	if (b->had_traffic)
		*ret = b->traffic_last;
	else if (box->spec.network != BOX_NETWORK_BRIDGE ||
	         !traffic_read(b->fds[ENGINE_FD_NETWORK], ret))
		return false;
	ret->sent -= b->traffic_before.sent;
	ret->received -= b->traffic_before.received;
	return true;
}

void engine_box_destroy(struct box *box)
{
	struct engine_box *b = engine_box(box);
	struct engine_request request = request_for(b, ENGINE_DESTROY);

	if (is_in(b, STATE_BIT(ENGINE_BOX_DESTROYING) | STATE_BIT(ENGINE_BOX_GONE)))
		return;
	if (b->state != ENGINE_BOX_LOST && b->engine_has)
		kill_box(b);
	set_state(b, ENGINE_BOX_DESTROYING);
	egress_port_close(TAKE_PTR(box->egress));
	gateway_port_close(TAKE_PTR(box->gateway));
	/* The open table would keep the namespace, and so the interface. */
	b->fds[ENGINE_FD_NETWORK] = fd_close(b->fds[ENGINE_FD_NETWORK]);
	link_close(box->link);
	if (!b->engine_has) {
		end_box(b);
		return;
	}
	/* 0: the engine just died; reading its socket ends this box too. */
	b->destroy_seq = engine_driver_send(engine_of(b), &request);
	timer_start(b->timer, ENGINE_GONE_TIMEOUT_US);
}

static uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct msg_setup setup_of(const struct engine_box *b, const struct engine_created *created)
{
	const struct box_limits *limits = &b->base.spec.limits;
	bool counted = created->layers & LAYER_BIT(LAYER_CGROUP_MEMORY);
	uint64_t files =
		larger_of(limits->workspace_bytes, larger_of(limits->tmp_bytes, limits->shm_bytes));

	return (struct msg_setup){
		.version = WIRE_VERSION,
		.uid = created->uid,
		.gid = created->gid,
		.nofile = limits->nofile,
		.nproc = limits->pids,
		.fsize = files + FSIZE_SLACK_BYTES,
		/* Only without a cgroup: RLIMIT_DATA is per process and ignores sharing. */
		.data_limit = counted ? 0 : limits->memory_bytes,
		.landlock_required = (b->required & LAYER_BIT(LAYER_LANDLOCK)) != 0,
	};
}

static_assert(ENGINE_EGRESS_PORT == BOX_PROXY_PORT, "the variables of programs name the port");

void engine_box_created(struct engine_box *b, const struct engine_created *created,
                        const int fds[ENGINE_FD_COUNT])
{
	struct msg_setup setup = setup_of(b, created);
	struct error err = {0};

	memcpy(b->fds, fds, sizeof(b->fds));
	b->refusals.sock = b->fds[ENGINE_FD_REFUSALS];
	b->created = true;
	if (b->state != ENGINE_BOX_CREATING) {
		kill_box(b);
		return;
	}
	set_state(b, ENGINE_BOX_BUILDING);
	b->base.layers = created->layers | created->vouched;
	b->base.vouched = created->vouched;
	b->base.start = engine_start_of(&b->base.spec, created->start);
	/* Send nothing to a box that lacks an engine layer. */
	if (driver_check_layers(b->base.layers | LINK_AGENT_LAYERS, b->required, &err) < 0) {
		lose_box(b, &err);
		return;
	}
	box_open_egress(&b->base, b->fds[ENGINE_FD_NETWORK]);
	link_open(b->base.link, TAKE_FD(b->fds[ENGINE_FD_AGENT]), &setup);
}

static struct engine_kept *find_kept(struct engine_driver *e, const char *id)
{
	struct engine_kept *kept;

	LIST_FOREACH (kept, &e->kept, struct engine_kept, node)
		if (strcmp(kept->id, id) == 0)
			return kept;
	return NULL;
}

int engine_box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
                     struct box **ret_box, bool *ret_frozen, struct error *err)
{
	struct engine_driver *e =
		engine_driver_maker(CONTAINER_OF(d, struct engine_driver, base), spec);
	struct engine_kept *kept = e ? find_kept(e, spec->id) : NULL;
	struct engine_box *b;

	if (!kept)
		return error_set(err, ERR_NOT_FOUND, 0, "box %s is gone", spec->id);
	/* The requirements may have changed. */
	if (driver_check_layers(kept->created.layers | kept->created.vouched | LINK_AGENT_LAYERS,
	                        driver_required(d, spec), err) < 0)
		return -1;
	b = new_box(e, spec, events);
	if (map_put(e->by_id, spec->id, b) < 0)
		abort(); /* unique in the engine */
	b->adopted = b->created = b->engine_has = true;
	memcpy(b->fds, kept->fds, sizeof(b->fds));
	b->refusals.sock = b->fds[ENGINE_FD_REFUSALS];
	for (size_t i = 0; i < ENGINE_FD_COUNT; i++)
		kept->fds[i] = -1;
	b->base.layers = kept->created.layers | kept->created.vouched;
	b->base.vouched = kept->created.vouched;
	b->freeze_asked = b->freeze_wanted = *ret_frozen = kept->created.frozen;
	engine_kept_free(kept);
	set_state(b, ENGINE_BOX_BUILDING);
	box_open_egress(&b->base, b->fds[ENGINE_FD_NETWORK]);
	/* A run that ended before would otherwise count everything since the box was made. */
	if (spec->network == BOX_NETWORK_BRIDGE)
		(void)!traffic_read(b->fds[ENGINE_FD_NETWORK], &b->traffic_before);
	/* Policies may have changed since it was made; it may have had an interface. */
	if (spec->network == BOX_NETWORK_BRIDGE ||
	    (spec->network == BOX_NETWORK_NONE && b->fds[ENGINE_FD_NETWORK] >= 0))
		send_reach(b);
	link_adopt(b->base.link, TAKE_FD(b->fds[ENGINE_FD_AGENT]));
	if (!b->freeze_wanted)
		timer_start(b->timer, ENGINE_HELLO_TIMEOUT_US);
	*ret_box = &b->base;
	return 0;
}

/*
 * The engine may still be working on it: box_destroy requests removal as usual, and GONE comes even
 * if nothing was created.
 */
void engine_box_failed(struct engine_box *b, const struct error *err)
{
	lose_box(b, err);
}

/* Boxes end by SIGKILL; 0 and 1 are the agent's exit codes. */
static bool is_fault(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) > 1;
}

void engine_box_gone(struct engine_box *b, const struct engine_gone *gone)
{
	int status = gone->wait_status;
	struct error err = {0};

	(void)error_set(&err, ERR_AGENT_LOST, 0, "the agent ended (%s %d)",
	                WIFSIGNALED(status) ? "signal" : "status",
	                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	b->engine_has = false;
	if (gone->leftovers)
		box_log(&b->base, LOG_LEVEL_DEBUG, "%u processes were left over", gone->leftovers);
	/* Even if destroyed: nothing else reports it. */
	if (is_fault(status))
		box_log(&b->base, LOG_LEVEL_WARN, "%s", err.msg);
	if (b->state == ENGINE_BOX_DESTROYING) {
		end_box(b);
		return;
	}
	if (!is_in(b, STATES_ALIVE))
		return;
	/* The socket may hold its last messages. */
	link_drain(b->base.link);
	lose_box(b, &err);
}

void engine_box_orphaned(struct engine_box *b, const struct error *err)
{
	if (is_in(b, STATES_ALIVE))
		kill_box(b);
	b->engine_has = false;
	if (b->state == ENGINE_BOX_DESTROYING)
		end_box(b);
	else
		lose_box(b, err);
}
