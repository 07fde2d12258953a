/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/box.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "engine/runtime.h"
#include "engine/step_bridge.h"

/*
 * Theory of operation. A box goes from BUILDING to RUNNING at EOF of its status socket, and from
 * any state to ENDING: SIGKILL to PID 1 through its pidfd, which kills the whole pid namespace, and
 * as a second means a kill of the cgroup. When PID 1 can be reaped, the kernel has reaped all
 * others, so the groups can be removed, and last the slot with its host ids is freed.
 */

#define BUILD_TIMEOUT_US (20 * USEC_PER_SEC)
#define RETRY_FIRST_US   (1 * USEC_PER_MS)
#define RETRY_LAST_US    (200 * USEC_PER_MS)
#define TRIES_WARN       50
/* Later a program does not notice that the engine refills its pools. */
#define CALM_AFTER_US (10 * USEC_PER_MS)

#define STATE_BIT(s) (1u << (s))

/* States from which each state may be entered. */
static const uint32_t entered_from[BOX_STATE_COUNT] = {
	[BOX_RUNNING] = STATE_BIT(BOX_BUILDING),
	[BOX_ENDED] = STATE_BIT(BOX_RUNNING),
	[BOX_ENDING] = STATE_BIT(BOX_BUILDING) | STATE_BIT(BOX_RUNNING) | STATE_BIT(BOX_ENDED),
	[BOX_SWEEPING] = STATE_BIT(BOX_ENDING),
	[BOX_GONE] = STATE_BIT(BOX_SWEEPING),
};

static bool is_in(const struct box *box, uint32_t states)
{
	return STATE_BIT(box->state) & states;
}

/* Each round visits these; the others may be thousands. */
static bool has_deadline(const struct box *box)
{
	return box->freeze_seq || !is_in(box, STATE_BIT(BOX_RUNNING) | STATE_BIT(BOX_ENDED));
}

static void enter_due(struct boxes *boxes, struct box *box, bool had_deadline)
{
	if (had_deadline && !has_deadline(box))
		list_remove(&box->due);
	if (!had_deadline && has_deadline(box))
		list_append(&boxes->due, &box->due);
}

static void set_freeze_seq(struct boxes *boxes, struct box *box, uint32_t seq)
{
	bool had_deadline = has_deadline(box);

	box->freeze_seq = seq;
	box->tries = 0;
	enter_due(boxes, box, had_deadline);
}

static void set_state(struct boxes *boxes, struct box *box, enum box_state next)
{
	bool had_deadline = has_deadline(box);

	assert(entered_from[next] & STATE_BIT(box->state));
	box->state = next;
	box->freeze_seq = 0; /* no longer RUNNING, or not yet asked */
	enter_due(boxes, box, had_deadline);
}

#define STATES_OVER (STATE_BIT(BOX_ENDING) | STATE_BIT(BOX_SWEEPING) | STATE_BIT(BOX_GONE))

int boxes_init(struct boxes *boxes, const struct host *host, int epoll,
               const struct boxes_events *events)
{
	*boxes = (struct boxes){.host = host, .epoll = epoll, .events = *events};
	boxes->by_id = map_new();
	slots_init(&boxes->slots, host->slots);
	list_init(&boxes->all);
	list_init(&boxes->due);
	cgroup_pool_open(&boxes->groups, host);
	zygotes_init(&boxes->zygotes, host, &boxes->groups, epoll, BOX_WATCH_ZYGOTES);
	boxes->nets = netns_pool_empty();
	return host->facts.host_network ? 0 : netns_pool_open(&boxes->nets, host->bridge);
}

static void box_free(struct boxes *boxes, struct box *box)
{
	list_remove(&box->node);
	if (has_deadline(box))
		list_remove(&box->due);
	(void)map_remove(boxes->by_id, box->build.id);
	boxes->by_slot[box->build.slot] = NULL;
	build_close(&box->build);
	/* Last: from here on another box may get the host ids. */
	slots_put(&boxes->slots, box->build.slot);
	free(box);
}

void boxes_done(struct boxes *boxes)
{
	struct box *box;

	LIST_FOREACH (box, &boxes->all, struct box, node)
		box_free(boxes, box);
	map_free(boxes->by_id);
	boxes->by_id = NULL;
	zygotes_close(&boxes->zygotes);
	cgroup_pool_close(&boxes->groups);
	netns_pool_close(&boxes->nets);
}

void box_set_reach(struct boxes *boxes, struct box *box, bool connected, uint32_t ranges)
{
	struct build *b = &box->build;
	int r;

	if (!(b->plan.flags & ENGINE_FLAG_BRIDGE) || b->net < 0 || b->address == 0)
		return;
	r = connected ? bridge_change(b, ranges) : bridge_disconnect(b);
	if (r >= 0)
		return;
	log_warn("cannot change the network of box %s (%s): ending it", b->id, strerror(-r));
	box_end(boxes, box);
}

void boxes_disconnect(struct boxes *boxes)
{
	struct box *box;

	LIST_FOREACH (box, &boxes->all, struct box, node)
		box_set_reach(boxes, box, false, 0);
}

struct box *boxes_find(struct boxes *boxes, const char *id)
{
	return map_get(boxes->by_id, id);
}

bool boxes_have_child(const struct boxes *boxes, pid_t pid)
{
	const struct box *box;

	if (zygotes_have_child(&boxes->zygotes, pid))
		return true;
	LIST_FOREACH (box, &boxes->all, struct box, node)
		if (!box->reaped && box->build.pid == pid)
			return true;
	return false;
}

static struct box *box_new(struct boxes *boxes, const struct engine_request *req, uint32_t slot)
{
	struct box *box = NEW(struct box);

	build_init(&box->build, boxes->host, &boxes->nets, &boxes->groups);
	memcpy(box->build.id, req->box_id, sizeof(box->build.id));
	memcpy(box->build.root_name, req->root, sizeof(box->build.root_name));
	memcpy(box->build.packages, req->packages, sizeof(box->build.packages));
	memcpy(box->build.tenant, req->tenant, sizeof(box->build.tenant));
	box->build.slot = slot;
	box->build.ranges = req->ranges;
	box->create_seq = req->seq;
	box->state = BOX_BUILDING;
	box->deadline_us = clock_us() + BUILD_TIMEOUT_US;
	list_append(&boxes->all, &box->node);
	list_append(&boxes->due, &box->due);
	boxes->by_slot[slot] = box;
	return box;
}

static int watch_fd(struct boxes *boxes, struct box *box, int fd, enum box_watch which)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)box->build.slot * 2 + which,
	};

	return epoll_ctl(boxes->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* close() alone leaves a descriptor in epoll while the daemon has a copy. */
static void unwatch_fd(struct boxes *boxes, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(boxes->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static int start_box(struct boxes *boxes, struct box *box, struct error *err)
{
	int r;

	if (apply_phase(&box->build, PLAN_PREPARE, err) < 0)
		return -1;
	r = watch_fd(boxes, box, box->build.sync_host, BOX_WATCH_SYNC);
	if (r >= 0)
		r = watch_fd(boxes, box, box->build.pidfd, BOX_WATCH_PIDFD);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "watch the box");
	return 0;
}

int boxes_create(struct boxes *boxes, const struct engine_request *req, struct error *err)
{
	enum engine_start how;
	struct zygote *zygote = zygotes_find(&boxes->zygotes, req, &how);
	uint32_t flags = zygote ? req->flags | ENGINE_FLAG_INJECT : req->flags;
	struct plan plan;
	struct box *box;
	int slot;

	if (plan_make(&boxes->host->facts, &req->limits, flags, &plan, err) < 0)
		return -1;
	if (map_get(boxes->by_id, req->box_id))
		return error_set(err, ERR_CONFLICT, 0, "box '%s' already exists", req->box_id);
	slot = slots_take(&boxes->slots);
	if (slot < 0)
		return error_set(err, ERR_BUSY, 0, "all %u id slots are in use",
		                 boxes->slots.count);
	box = box_new(boxes, req, (uint32_t)slot);
	box->build.plan = plan;
	box->build.zygote = zygote;
	box->start = how;
	if (map_put(boxes->by_id, box->build.id, box) < 0)
		abort();
	if (start_box(boxes, box, err) == 0) {
		boxes->events.on_created(boxes->events.ctx, box);
		return 0;
	}
	box->create_seq = 0; /* the caller answers */
	box_end(boxes, box);
	return -1;
}

static void reap_init(struct boxes *boxes, struct box *box)
{
	siginfo_t info = {0};

	if (box->reaped || box->build.pidfd < 0)
		return;
	/* By pidfd: the pid may belong to another process by now. */
	if (waitid(P_PIDFD, (id_t)box->build.pidfd, &info, WEXITED | WNOHANG) < 0 ||
	    info.si_pid == 0)
		return;
	unwatch_fd(boxes, box->build.pidfd);
	box->reaped = true;
	box->wait_status =
		info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status & 0x7f;
}

/* PID 1, which is the agent; or what waits for the runtime, the runtime's own and the agent. */
static uint32_t own_processes(const struct host *host)
{
	return 1 + (host->runtime ? host->runtime->pids_running : 0);
}

void box_end(struct boxes *boxes, struct box *box)
{
	struct build *b = &box->build;
	uint32_t count, known;

	if (is_in(box, STATES_OVER))
		return;
	count = groups_count(boxes->host, &b->groups);
	reap_init(boxes, box);
	known = box->reaped ? 0 : own_processes(boxes->host);
	box->leftovers = count > known ? count - known : 0;
	set_state(boxes, box, BOX_ENDING);
	boxes->calm_us = 0; /* the program has finished */
	if (b->pidfd >= 0 && !box->reaped)
		(void)pidfd_send_signal(b->pidfd, SIGKILL, NULL, 0);
	/* After the signal, because this lifts the quota. */
	if (!box->reaped || count > 0)
		groups_kill(boxes->host, &b->groups);
	unwatch_fd(boxes, b->sync_host);
	b->sync_host = fd_close(b->sync_host);
	box->tries = 0;
	box->deadline_us = 0; /* PID 1 is dead or was never started */
}

void boxes_end_all(struct boxes *boxes)
{
	struct box *box;

	LIST_FOREACH (box, &boxes->all, struct box, node)
		box_end(boxes, box);
}

bool box_is_kept(const struct box *box)
{
	const uint32_t mask = ENGINE_FLAG_KEEP | ENGINE_FLAG_SPARE;

	return (box->build.plan.flags & mask) == ENGINE_FLAG_KEEP && box->state == BOX_RUNNING &&
	       box->destroy_seq == 0;
}

size_t boxes_end_others(struct boxes *boxes)
{
	struct box *box;
	size_t kept = 0;

	LIST_FOREACH (box, &boxes->all, struct box, node) {
		box_catch_up(boxes, box);
		if (box_is_kept(box))
			kept++;
		else
			box_end(boxes, box);
	}
	return kept;
}

static void fail_box(struct boxes *boxes, struct box *box, const struct error *err)
{
	boxes->events.on_failed(boxes->events.ctx, box, err);
	box_end(boxes, box);
}

/* A struct error: building failed. EOF, or from a runtime's box one byte: the agent runs. Return:
 * false: nothing to read. */
static bool on_sync(struct boxes *boxes, struct box *box)
{
	struct error report = {0};
	ssize_t n = fd_recv_plain(box->build.sync_host, &report, sizeof(report), MSG_DONTWAIT);

	if (n < 0)
		return false;
	if (n == sizeof(report)) {
		report.msg[sizeof(report.msg) - 1] = '\0';
		report.field[sizeof(report.field) - 1] = '\0';
		fail_box(boxes, box, &report);
		return true;
	}
	if (n == (boxes->host->runtime ? 1 : 0) && box->state == BOX_BUILDING) {
		set_state(boxes, box, BOX_RUNNING);
		groups_settle(boxes->host, &box->build.groups, &box->build.plan.limits);
		boxes->calm_us = clock_us() + CALM_AFTER_US;
		unwatch_fd(boxes, box->build.sync_host);
		box->build.sync_host = fd_close(box->build.sync_host);
		return true;
	}
	(void)error_set(&report, ERR_BOX_FAILED, 0, "the box exited while it was being built");
	fail_box(boxes, box, &report);
	return true;
}

void box_catch_up(struct boxes *boxes, struct box *box)
{
	while (box->state == BOX_BUILDING && on_sync(boxes, box))
		;
}

static void on_pidfd(struct boxes *boxes, struct box *box)
{
	box_catch_up(boxes, box); /* the status socket has the reason */
	reap_init(boxes, box);
	if (box->state == BOX_RUNNING && box->reaped)
		set_state(boxes, box, BOX_ENDED);
	if (box->state == BOX_ENDING)
		box->deadline_us = 0;
}

void boxes_on_event(struct boxes *boxes, uint64_t value)
{
	uint64_t slot = value / 2;
	struct box *box = slot < BOXES_MAX ? boxes->by_slot[slot] : NULL;

	if (value >= BOX_WATCH_ZYGOTES) {
		zygotes_on_event(&boxes->zygotes, value);
		return;
	}
	if (!box)
		return;
	if (value % 2 == BOX_WATCH_PIDFD)
		on_pidfd(boxes, box);
	else if (box->build.sync_host >= 0)
		(void)on_sync(boxes, box);
}

static void retry_later(struct box *box, uint64_t now)
{
	uint64_t wait = RETRY_FIRST_US << (box->tries < 8 ? box->tries : 8);

	box->deadline_us = now + (wait < RETRY_LAST_US ? wait : RETRY_LAST_US);
	if (++box->tries == TRIES_WARN)
		log_warn("box %s is not %s after %d tries, trying on", box->build.id,
		         box->state == BOX_RUNNING ? "frozen" : "gone", TRIES_WARN);
}

int boxes_freeze(struct boxes *boxes, struct box *box, uint32_t seq, bool frozen)
{
	int r = groups_freeze(boxes->host, &box->build.groups, frozen);

	if (r < 0)
		return r;
	box->frozen = frozen;
	set_freeze_seq(boxes, box, seq);
	box->deadline_us = 0; /* boxes_work follows */
	return 0;
}

void boxes_forget_freezes(struct boxes *boxes)
{
	struct box *box;

	LIST_FOREACH (box, &boxes->due, struct box, due)
		if (box->freeze_seq)
			set_freeze_seq(boxes, box, 0);
}

/* A process that sleeps in the kernel stops when it wakes: neither version reports it by itself.
 * After a thaw there is nothing to wait for. */
static void check_frozen(struct boxes *boxes, struct box *box, uint64_t now)
{
	int r = box->frozen ? groups_are_frozen(boxes->host, &box->build.groups) : 1;
	uint32_t seq = box->freeze_seq;

	if (r == 0) {
		retry_later(box, now);
		return;
	}
	set_freeze_seq(boxes, box, 0);
	boxes->events.on_frozen(boxes->events.ctx, box, seq, r < 0 ? r : 0);
}

static void clean_up(struct boxes *boxes, struct box *box, uint64_t now)
{
	struct build *b = &box->build;

	if (box->state == BOX_ENDING) {
		reap_init(boxes, box);
		if (b->pidfd >= 0 && !box->reaped) {
			retry_later(box, now);
			return;
		}
		set_state(boxes, box, BOX_SWEEPING);
	}
	if (groups_remove(boxes->host, &b->groups) < 0) {
		groups_kill(boxes->host, &b->groups);
		retry_later(box, now);
		return;
	}
	/* Until proxy and gateway have closed their copies of the sockets, connections there are
	 * this box's. An interface disappears only with its namespace. */
	if (b->plan.flags & (ENGINE_FLAG_EGRESS | ENGINE_FLAG_GATEWAY | ENGINE_FLAG_BRIDGE))
		netns_pool_drop(&boxes->nets, b->net);
	else
		netns_pool_give(&boxes->nets, b->net);
	b->net = -1;
	set_state(boxes, box, BOX_GONE);
}

static void run_box_timer(struct boxes *boxes, struct box *box, uint64_t now)
{
	struct error err = {0};

	if (box->deadline_us > now)
		return;
	if (box->state == BOX_BUILDING) {
		(void)error_set(&err, ERR_BOX_FAILED, ETIMEDOUT, "%s did not build the box in time",
		                boxes->host->runtime ? boxes->host->runtime->name : "the engine");
		fail_box(boxes, box, &err);
	}
	if (box->state == BOX_RUNNING)
		check_frozen(boxes, box, now);
	if (is_in(box, STATE_BIT(BOX_ENDING) | STATE_BIT(BOX_SWEEPING)))
		clean_up(boxes, box, now);
	if (box->state == BOX_GONE) {
		boxes->events.on_gone(boxes->events.ctx, box);
		box_free(boxes, box);
	}
}

/*
 * Refill when no box is starting: a box just executed is about to run a program, and would compete
 * for CPU. Return: when to try again.
 */
static uint64_t refill_pools(struct boxes *boxes, bool building, uint64_t now)
{
	bool calm = !building && boxes->calm_us <= now;

	if (calm || netns_pool_is_low(&boxes->nets))
		netns_pool_refill(&boxes->nets);
	if (calm)
		cgroup_pool_refill(&boxes->groups);
	return calm || building ? UINT64_MAX : boxes->calm_us;
}

int boxes_work(struct boxes *boxes)
{
	uint64_t now = clock_us(), next, ahead;
	bool building = false;
	struct box *box;

	LIST_FOREACH (box, &boxes->due, struct box, due)
		run_box_timer(boxes, box, now);
	next = zygotes_work(&boxes->zygotes, now);
	LIST_FOREACH (box, &boxes->due, struct box, due) {
		building = building || box->state == BOX_BUILDING;
		if (box->deadline_us < next)
			next = box->deadline_us;
	}
	ahead = refill_pools(boxes, building, now);
	if (ahead < next)
		next = ahead;
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now + USEC_PER_MS - 1) / USEC_PER_MS);
}
