/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the native driver's files: native.c the driver and the socket, native_spawn.c the
 * engine's start, native_handover.c taking over a running engine, native_zygote.c choice of
 * zygotes, native_reply.c the engine's replies, native_box.c one box.
 */

#include "base/list.h"
#include "driver/internal.h"
#include "driver/native.h"
#include "engine/engine.h"
#include <sys/types.h>

struct map;
struct timer;
struct watch;

/* For the engine's probe, including newuidmap and a cgroup sweep. */
#define NATIVE_PROBE_TIMEOUT_US (20 * 1000000ULL)
/* Until a warning about a box that does not end: killing a process tree under a tight memory limit
 * can take seconds. */
#define NATIVE_GONE_TIMEOUT_US (30 * 1000000ULL)
/* Waiting for the engine's reason when a box ended before HELLO. */
#define NATIVE_REASON_TIMEOUT_US (2 * 1000000ULL)
/* For the engine to clean up and exit. */
#define NATIVE_END_TIMEOUT_US (10 * 1000000ULL)
/* For HELLO of an adopted box, while not frozen. */
#define NATIVE_HELLO_TIMEOUT_US (15 * 1000000ULL)
#define NATIVE_PROBE_SEQ        1

/* A zygote that the engine was told to start; its number is its index plus 1. */
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
	pid_t pid;           /* of the engine; 0 when it was reaped or is not our child */
	int pidfd;           /* owned: of an engine that was taken over; else -1 */
	bool leaving;        /* kept boxes must not be ended any more */
	struct list kept;    /* struct native_kept: not adopted yet, owned */
	struct list boxes;   /* struct native_box, owned */
	size_t boxes_count;
	struct counters_absent absent; /* from their groups */
	size_t counted_max;            /* number of boxes that may keep counter files open */
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

/* A running engine. */
struct native_engine {
	int sock;  /* owned */
	pid_t pid; /* 0: not our child */
	int pidfd; /* owned; -1: our child */
	struct engine_probe probe;
};

/*
 * CREATING    by box_create: CREATE was sent; programs are queued. Left by CREATED or FAILED.
 * BUILDING    by CREATED or box_adopt: the stream is open, programs are sent. Left by HELLO,
 *             FAILED, GONE or EOF.
 * READY       by HELLO.
 * LOST        by any failure: on_lost was called, the link is closed, the box killed.
 *             Left by box_destroy only.
 * DESTROYING  by box_destroy: the box was killed, DESTROY was sent. Left by GONE.
 * GONE        nothing is left; on_gone is due from the loop, then the memory is freed.
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
	bool created;    /* CREATED was received */
	bool engine_has; /* the engine may still have something of it */
	uint32_t required;
	uint32_t create_seq, destroy_seq, freeze_seq; /* of requests; 0: none in progress */
	bool freeze_asked, freeze_wanted;             /* last sent; current wish */
	bool adopted;                                 /* created by an earlier daemon */
	int fds[ENGINE_FD_COUNT];                     /* owned, -1: none */
	struct counters_files counters;
	struct timer *timer; /* owned: timeout of the engine's reason, or of GONE */
	struct link_events link_events;
};

/** native_identity - a hash of the engine's build and options. */
uint64_t native_identity(const struct native_config *config);
/** native_is_of_past - not a reply to us: the end or failure of an earlier daemon's box. */
bool native_is_of_past(const struct engine_reply *reply);
/** native_bad_reply - ERR_PROTOCOL: "millibox-engine @what". Return: always -1. */
int native_bad_reply(struct error *err, const char *what);
/** native_probe - ask the engine at @sock what the host supports. */
int native_probe(int sock, struct engine_probe *ret_probe, struct error *err) attr_must_check;
/** native_wait_readable - Return: 0, -ETIMEDOUT, or another negative errno. */
int native_wait_readable(int fd, uint64_t deadline_us);
/**
 * native_handover_find - find the engine of an earlier daemon of our state directory. One of
 * another build or configuration is told to end and waited for.
 */
bool native_handover_find(const struct native_config *config, struct native_engine *ret_engine);
/** native_handover_list - fill n->kept. An error means that the engine is unusable. */
int native_handover_list(struct native *n, struct error *err) attr_must_check;
void native_kept_free(struct native_kept *kept);
/**
 * native_sort_fds - move received descriptors to the slots that their mask names; those are then -1
 * in @fds. Return: 0, or -1: mismatch.
 */
int native_sort_fds(int *fds, size_t count, uint32_t mask, int ret_fds[ENGINE_FD_COUNT]);

/** native_new - takes ownership of @sock; @pid 0: not our child. */
struct driver *native_new(const struct native_config *config, int sock, pid_t pid,
                          const struct engine_probe *probe);
/** native_start_engine - fork, exec, wait for the probe. */
int native_start_engine(const struct native_config *config, int *ret_sock, pid_t *ret_pid,
                        struct engine_probe *ret_probe, struct error *err) attr_must_check;
/** native_wait_engine - reap it, waiting at most @timeout_us. Return: wait status, or -ETIMEDOUT.
 */
int native_wait_engine(pid_t pid, uint64_t timeout_us);
/** native_required_layers - see native.c. */
uint32_t native_required_layers(const struct engine_probe *probe, bool strict);

/** native_zygote - the number of @spec's zygote; 0: none available. */
uint32_t native_zygote(struct native *n, const struct box_spec *spec);
enum box_start native_start_of(const struct box_spec *spec, uint32_t start);
/** native_send - sets @request's seq. Return: the seq, or 0 when the engine is gone. */
uint32_t native_send(struct native *n, struct engine_request *request);
/** native_lose - the engine is gone or unreliable: end all boxes. From the loop. */
void native_lose(struct native *n, const struct error *err);

/**
 * native_reply - check one message of the engine and act on it; takes the descriptors. Return: 0,
 * or -1: a protocol violation.
 */
int native_reply(struct native *n, const void *data, size_t len, int *fds, size_t fds_count,
                 struct error *err) attr_must_check;

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
