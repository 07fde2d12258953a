/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the boxes that are alive, and how they end. One state machine per box, one writer of its
 * state (set_state in box.c); nothing here blocks. A box is freed only by boxes_work(), never from
 * inside the handling of its own event.
 */

#include "base/list.h"
#include "engine/cgroup_pool.h"
#include "engine/internal.h"
#include "engine/netns_pool.h"
#include "engine/zygote.h"

struct map;

enum box_state {
	/* The child joins its groups and makes its root. Left when its status socket closes (exec)
	 * or it fails. */
	BOX_BUILDING,
	/* The agent runs. Left by DESTROY or when PID 1 ends. */
	BOX_RUNNING,
	/* PID 1 ended by itself and was reaped. The groups stay until DESTROY: the daemon still
	 * reads counters from them. */
	BOX_ENDED,
	/* Everything was told to die; waiting for PID 1. */
	BOX_ENDING,
	/* No process is left; groups are being removed, which may need several tries. */
	BOX_SWEEPING,
	/* Nothing is left. boxes_work() tells the daemon and frees it. */
	BOX_GONE,
	BOX_STATE_COUNT
};

struct box {
	struct list node; /* of boxes.all */
	struct list due;  /* of boxes.due, if it is in there */
	struct build build;
	enum box_state state;
	enum engine_start start;
	uint32_t create_seq; /* until CREATED or FAILED was sent */
	uint32_t destroy_seq;
	bool announced; /* CREATED was sent: GONE will be */
	bool reaped;
	bool frozen;
	int wait_status;
	uint32_t leftovers;
	uint64_t deadline_us; /* BUILDING: given up then; ENDING, SWEEPING: next try */
	unsigned tries;
};

/* What box.c tells its owner; all are sent to the daemon. */
struct boxes_events {
	void *ctx;
	void (*on_created)(void *ctx, struct box *box);
	void (*on_failed)(void *ctx, struct box *box, const struct error *err);
	void (*on_gone)(void *ctx, const struct box *box);
};

struct boxes {
	const struct host *host;
	struct boxes_events events;
	int epoll; /* borrowed: descriptors of boxes are watched with box_watch() values */
	struct map *by_id;
	struct box *by_slot[BOXES_MAX];
	struct slots slots;
	struct list all;
	struct list due;  /* those that are neither RUNNING nor ENDED: something is to be done */
	uint64_t calm_us; /* until then the latest box is thought to be starting its program */
	struct netns_pool nets;
	struct cgroup_pool groups;
	struct zygotes zygotes;
};

/* Which of a box's descriptors an epoll event is about: slot * 2 + this. */
enum box_watch {
	BOX_WATCH_SYNC,
	BOX_WATCH_PIDFD,
};

/* First value for epoll of zygotes, above those of boxes. */
#define BOX_WATCH_ZYGOTES (BOXES_MAX * 2)

/** boxes_init - Return: 0 or a negative errno. */
int boxes_init(struct boxes *boxes, const struct host *host, int epoll,
               const struct boxes_events *events) attr_must_check;
void boxes_done(struct boxes *boxes);
/** boxes_create - starts making a box. Failures of later steps come as on_failed. */
int boxes_create(struct boxes *boxes, const struct engine_request *req,
                 struct error *err) attr_must_check;
struct box *boxes_find(struct boxes *boxes, const char *id);
/** boxes_on_event - @value as given to epoll; a box that is gone by now is ignored. */
void boxes_on_event(struct boxes *boxes, uint64_t value);
/** box_end - idempotent. */
void box_end(struct boxes *boxes, struct box *box);
void boxes_end_all(struct boxes *boxes);
/** box_is_kept - alive, and outlives the daemon. */
bool box_is_kept(const struct box *box);
/** boxes_end_others - all that are not kept. Return: how many are. */
size_t boxes_end_others(struct boxes *boxes);
/** boxes_work - what is due by time: tries again, gives up, frees. Return: ms to wait, or -1. */
int boxes_work(struct boxes *boxes);
