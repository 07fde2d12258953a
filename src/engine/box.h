/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: live boxes and how they end. One state machine per box; only set_state in box.c writes its
 * state. Nothing here blocks. Only boxes_work() frees a box, never the handler of its own event.
 */

#include "base/list.h"
#include "engine/cgroup_pool.h"
#include "engine/internal.h"
#include "engine/netns_pool.h"
#include "engine/zygote.h"

struct map;

enum box_state {
	/* The child joins its groups and makes its root, until its status socket closes (exec) or
	 * it fails. */
	BOX_BUILDING,
	/* The agent runs, until DESTROY or the exit of PID 1. */
	BOX_RUNNING,
	/* PID 1 exited by itself and was reaped. The groups stay until DESTROY: the daemon reads
	 * their counters. */
	BOX_ENDED,
	/* All processes were killed; waiting for PID 1. */
	BOX_ENDING,
	/* No process is left; removing the groups may take several tries. */
	BOX_SWEEPING,
	/* Nothing is left; boxes_work() frees the box. */
	BOX_GONE,
	BOX_STATE_COUNT
};

struct box {
	struct list node; /* of boxes.all */
	struct list due;  /* of boxes.due, if has_deadline() */
	struct build build;
	enum box_state state;
	enum engine_start start;
	uint32_t create_seq; /* until CREATED or FAILED was sent */
	uint32_t destroy_seq;
	bool announced; /* CREATED was sent: GONE will be */
	bool reaped;
	bool frozen;         /* or being frozen */
	uint32_t freeze_seq; /* RUNNING: until FROZEN was sent */
	int wait_status;
	uint32_t leftovers;
	uint64_t deadline_us; /* BUILDING: timeout; others: next try */
	unsigned tries;
};

struct boxes_events {
	void *ctx;
	void (*on_created)(void *ctx, struct box *box);
	void (*on_failed)(void *ctx, struct box *box, const struct error *err);
	void (*on_gone)(void *ctx, const struct box *box);
	/* The kernel has done what boxes_freeze asked for. @r: 0, or a negative errno. */
	void (*on_frozen)(void *ctx, const struct box *box, uint32_t seq, int r);
};

struct boxes {
	const struct host *host;
	struct boxes_events events;
	int epoll; /* borrowed; values: enum box_watch */
	struct map *by_id;
	struct box *by_slot[BOXES_MAX];
	struct slots slots;
	struct list all;
	struct list due;  /* boxes with has_deadline() */
	uint64_t calm_us; /* no refill before: the latest box is starting its program */
	struct netns_pool nets;
	struct cgroup_pool groups;
	struct zygotes zygotes;
};

/** boxes_have_child - whether @pid is a box or a zygote, which are waited for elsewhere. */
bool boxes_have_child(const struct boxes *boxes, pid_t pid);

/* The epoll value of a box's descriptor is slot * 2 + this. */
enum box_watch {
	BOX_WATCH_SYNC,
	BOX_WATCH_PIDFD,
};

/* First epoll value of zygotes, above those of boxes. */
#define BOX_WATCH_ZYGOTES (BOXES_MAX * 2)

int boxes_init(struct boxes *boxes, const struct host *host, int epoll,
               const struct boxes_events *events) attr_must_check;
void boxes_done(struct boxes *boxes);
/** boxes_create - start to make a box. on_failed reports failures of later steps. */
int boxes_create(struct boxes *boxes, const struct engine_request *req,
                 struct error *err) attr_must_check;
struct box *boxes_find(struct boxes *boxes, const char *id);
/** boxes_on_event - @value is epoll's; ignored if the box is gone. */
void boxes_on_event(struct boxes *boxes, uint64_t value);
/** box_catch_up - read whether its agent runs: the daemon may know that before this loop does. */
void box_catch_up(struct boxes *boxes, struct box *box);
/** boxes_freeze - a RUNNING box; on_frozen follows unless it ends first. A later call replaces an
 * unfinished one. */
int boxes_freeze(struct boxes *boxes, struct box *box, uint32_t seq, bool frozen) attr_must_check;
/** boxes_forget_freezes - who asked is gone: on_frozen will not be called. */
void boxes_forget_freezes(struct boxes *boxes);
/** box_end - idempotent. */
void box_end(struct boxes *boxes, struct box *box);
void boxes_end_all(struct boxes *boxes);
/** box_set_reach - give the interface of a box other ranges or, not @connected, remove it for good.
 * Nothing if it has none; if it cannot be done, the box ends. */
void box_set_reach(struct boxes *boxes, struct box *box, bool connected, uint32_t ranges);
/** boxes_disconnect - remove all interfaces that millibox-bridge made. */
void boxes_disconnect(struct boxes *boxes);
/** box_is_kept - runs and outlives the daemon. */
bool box_is_kept(const struct box *box);
/** boxes_end_others - end all boxes that are not kept. Return: the number of kept ones. */
size_t boxes_end_others(struct boxes *boxes);
/** boxes_work - handle timers: retry, time out, free. Return: ms until the next one, or -1. */
int boxes_work(struct boxes *boxes);
