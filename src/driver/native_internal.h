/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the native driver, which talks to millibox-engine. Shared by its files only:
 * native.c the driver and the socket, native_spawn.c the engine's start, native_handover.c an
 * engine that is there already, native_zygote.c what it makes first programs from, native_reply.c
 * what it answers, native_box.c one box.
 */

#include "base/list.h"
#include "driver/internal.h"
#include "driver/native.h"
#include "engine/engine.h"
#include <sys/types.h>

struct map;
struct timer;
struct watch;

/* How long the engine may take to look at the host; newuidmap and a cgroup sweep are in it. */
#define NATIVE_PROBE_TIMEOUT_US (20 * 1000000ULL)
/* How long the end of a box may take before the log says so. Killing a tree under a heavy memory
 * limit can take seconds. */
#define NATIVE_GONE_TIMEOUT_US (30 * 1000000ULL)
/* How long the engine has to say why a box ended that never said hello. */
#define NATIVE_REASON_TIMEOUT_US (2 * 1000000ULL)
/* How long native_free waits for the engine to clean up and end. */
#define NATIVE_END_TIMEOUT_US (10 * 1000000ULL)
/* How long the agent of an adopted box has to say hello, from when it is not frozen. */
#define NATIVE_HELLO_TIMEOUT_US (15 * 1000000ULL)
#define NATIVE_PROBE_SEQ        1

/* What the engine was told to have; its number is its place, from 1. */
struct native_zygote {
	char command[BOX_ZYGOTE_LEN]; /* "": none */
	char modules[BOX_MODULES_LEN];
	uint64_t used_us;
};

struct native {
	struct driver base;
	struct loop *loop;   /* NULL until attached */
	struct watch *watch; /* owned */
	int sock;            /* owned; -1 when the engine is gone */
	pid_t pid;           /* of the engine; 0 when it was waited for, or is not our child */
	int pidfd;           /* owned: of an engine that was taken over; else -1 */
	bool leaving;        /* boxes that are kept are not to be ended any more */
	struct list kept;    /* struct native_kept: not adopted yet, owned */
	struct list boxes;   /* struct native_box, owned */
	size_t boxes_count;
	struct counters_absent absent; /* from their groups */
	size_t counted_max;            /* so many boxes may keep files of theirs open */
	struct map *by_id;             /* the same, by id */
	struct list waiting; /* struct native_waiting: requests the socket had no room for, owned */
	uint32_t seq;
	struct native_zygote zygotes[ENGINE_ZYGOTES_MAX];
	bool has_zygotes;
	void (*on_engine_lost)(void *ctx, const struct error *err);
	void *ctx;
};

/* A box of an earlier daemon. */
struct native_kept {
	struct list node; /* native.kept */
	char id[ENGINE_ID_LEN];
	struct engine_created created;
	int fds[ENGINE_FD_COUNT]; /* owned, -1: none */
};

/* An engine to work with. */
struct native_engine {
	int sock;  /* owned */
	pid_t pid; /* 0: not our child */
	int pidfd; /* owned; not our child; else -1 */
	struct engine_probe probe;
};

/*
 * CREATING    by box_create: CREATE was sent. Programs are kept. Left by CREATED or FAILED.
 * BUILDING    by CREATED or box_adopt: the stream is there, programs are sent. Left by HELLO,
 *             FAILED, GONE or the end of the stream.
 * READY       by HELLO.
 * LOST        by any failure: on_lost was called, the link is closed, the kill switch was pulled.
 *             Left by box_destroy only.
 * DESTROYING  by box_destroy: the kill switch was pulled, DESTROY was sent. Left by GONE.
 * GONE        nothing is left; on_gone is due from the loop, then the memory goes.
 */
enum native_state {
	NATIVE_CREATING,
	NATIVE_BUILDING,
	NATIVE_READY,
	NATIVE_LOST,
	NATIVE_DESTROYING,
	NATIVE_GONE,
	NATIVE_STATE_COUNT
};

struct native_box {
	struct box base;
	struct list node; /* native.boxes */
	enum native_state state;
	bool created;    /* CREATED came */
	bool engine_has; /* the engine may still have something of it */
	uint32_t required;
	uint32_t create_seq, destroy_seq, freeze_seq; /* of requests; 0: none under way */
	bool freeze_asked, freeze_wanted;             /* of the engine; of us, since then */
	bool adopted;                                 /* made by an earlier daemon */
	int fds[ENGINE_FD_COUNT];                     /* owned, -1: none */
	struct counters_files counters;
	struct timer *timer; /* owned: the engine's reason, or GONE, is overdue */
	struct link_events link_events;
};

/** native_identity - a number of all that makes an engine what it is: its build and its options. */
uint64_t native_identity(const struct native_config *config);
/** native_is_of_past - no answer to what was asked last: it is about a box, whose end or failure
 * may still be an earlier daemon's to hear. */
bool native_is_of_past(const struct engine_reply *reply);
/** native_probe - ask the engine at @sock what the host can do. */
int native_probe(int sock, struct engine_probe *ret_probe, struct error *err) attr_must_check;
/** native_wait_readable - Return: 0, -ETIMEDOUT, or another negative errno. */
int native_wait_readable(int fd, uint64_t deadline_us);
/**
 * native_handover_find - the engine of an earlier daemon with our name. One that is not what ours
 * would be is told to end, and waited for. Return: whether there is one to work with.
 */
bool native_handover_find(const struct native_config *config, struct native_engine *ret_engine);
/** native_handover_list - fill n->kept. An error means that the engine is of no use. */
int native_handover_list(struct native *n, struct error *err) attr_must_check;
void native_kept_free(struct native_kept *kept);
/** native_sort_fds - spread the descriptors that came over the places their mask names; those are
 * then -1 in @fds. Return: 0, or -1 when they do not match. */
int native_sort_fds(int *fds, size_t count, uint32_t mask, int ret_fds[ENGINE_FD_COUNT]);

/** native_new - around a running engine: takes ownership of @sock; @pid 0: not ours to wait for. */
struct driver *native_new(const struct native_config *config, int sock, pid_t pid,
                          const struct engine_probe *probe);
/** native_start_engine - fork, exec, wait for the probe. Return: 0 with the three results. */
int native_start_engine(const struct native_config *config, int *ret_sock, pid_t *ret_pid,
                        struct engine_probe *ret_probe, struct error *err) attr_must_check;
/** native_wait_engine - reap it, waiting at most @timeout_us. Return: wait status, or -ETIMEDOUT.
 */
int native_wait_engine(pid_t pid, uint64_t timeout_us);
/** native_required_layers - the rule; see native.c. */
uint32_t native_required_layers(const struct engine_probe *probe, bool strict);

/** native_zygote - the number of the zygote that @spec wants; 0: none can be had. */
uint32_t native_zygote(struct native *n, const struct box_spec *spec);
/** native_start_of - in core's words what the engine said. */
enum box_start native_start_of(const struct box_spec *spec, uint32_t start);
/** native_send - @request gets its seq here. Return: the seq, or 0 when the engine is gone. */
uint32_t native_send(struct native *n, struct engine_request *request);
/** native_lose - the engine is gone or cannot be relied on: the end of all boxes. From the loop. */
void native_lose(struct native *n, const struct error *err);

/**
 * native_reply - check one message of the engine and act on it. Takes ownership of the
 * descriptors. Return: 0, or -1: the engine said what it must not say.
 */
int native_reply(struct native *n, const void *data, size_t len, int *fds, size_t fds_count,
                 struct error *err) attr_must_check;

/* One box; native_box_* are what the replies do to it. */
int native_box_create(struct driver *d, const struct box_spec *spec,
                      const struct box_events *events, struct box **ret_box, struct error *err);
int native_box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
                     struct box **ret_box, bool *ret_frozen, struct error *err);
int native_box_freeze(struct box *box, bool frozen, struct error *err);
void native_box_claim(struct box *box);
void native_box_counters(struct box *box, enum counters_for purpose,
                         struct box_counters *ret_counters);
void native_box_destroy(struct box *box);
/** native_box_free - without a callback. */
void native_box_free(struct native_box *b);
/** native_box_created - takes ownership of @fds, one per enum engine_fd. */
void native_box_created(struct native_box *b, const struct engine_created *created,
                        const int fds[ENGINE_FD_COUNT]);
void native_box_frozen(struct native_box *b);
void native_box_failed(struct native_box *b, const struct error *err);
void native_box_gone(struct native_box *b, const struct engine_gone *gone);
/** native_box_orphaned - the engine is gone. */
void native_box_orphaned(struct native_box *b, const struct error *err);
