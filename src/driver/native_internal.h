/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the native driver's files: native.c the driver and its socket, native_spawn.c
 * starts the engine, native_handover.c takes over a running one, native_zygote.c chooses zygotes,
 * native_reply.c handles replies, native_box.c one box.
 *
 * With network host there are two engines, each with a struct native of its own. Core knows the
 * first one, which passes on what is about a box of the second. A box knows its own.
 */

#include "base/list.h"
#include "driver/internal.h"
#include "driver/native.h"
#include "engine/engine.h"
#include "service/refusals.h"
#include <sys/types.h>

struct map;
struct timer;
struct watch;

/* Engine's probe, with newuidmap and a cgroup sweep. */
#define NATIVE_PROBE_TIMEOUT_US (20 * 1000000ULL)
/* Until a slow end is logged: killing a process tree under a tight memory limit can take
 * seconds. */
#define NATIVE_GONE_TIMEOUT_US (30 * 1000000ULL)
/* For the engine's reason when a box ended before HELLO. */
#define NATIVE_REASON_TIMEOUT_US (2 * 1000000ULL)
#define NATIVE_END_TIMEOUT_US    (10 * 1000000ULL)
/* For HELLO of an adopted box, while not frozen. */
#define NATIVE_HELLO_TIMEOUT_US (15 * 1000000ULL)
#define NATIVE_PROBE_SEQ        1

/* A zygote of the engine's; its number is its index plus 1. */
struct native_zygote {
	char command[BOX_ZYGOTE_LEN]; /* "": none */
	char modules[BOX_MODULES_LEN];
	char tenant[BOX_TENANT_LEN];
	uint64_t used_us;
};

struct native {
	struct driver base;
	struct loop *loop;   /* NULL until attached */
	struct watch *watch; /* owned */
	int sock;            /* owned; -1 when the engine is gone */
	pid_t pid;           /* the engine; 0: reaped, or not our child */
	int pidfd;           /* owned: of an engine taken over; else -1 */
	bool leaving;        /* do not end kept boxes any more */
	struct list kept;    /* struct native_kept: not adopted, owned */
	struct list boxes;   /* struct native_box, owned */
	size_t boxes_count;
	struct counters_absent absent; /* from the boxes' groups */
	size_t counted_max;            /* boxes that may keep counter files open */
	struct map *by_id;             /* @boxes by id */
	struct list waiting; /* struct native_waiting: requests the socket had no room for, owned */
	uint32_t seq;
	struct native
		*host_network; /* makes boxes with network host; owned; NULL: there are none */
	struct native_zygote zygotes[ENGINE_ZYGOTES_MAX];
	bool has_zygotes;
	void (*on_engine_lost)(void *ctx, const struct error *err);
	void *ctx;
};

struct native_kept {
	struct list node; /* native.kept */
	char id[ENGINE_ID_LEN];
	struct engine_created created;
	int fds[ENGINE_FD_COUNT]; /* owned, -1: none */
};

struct native_engine {
	int sock;  /* owned */
	pid_t pid; /* 0: not our child */
	int pidfd; /* owned; -1: our child */
	struct engine_probe probe;
	struct helper_group import_group; /* owned */
};

/*
 *   CREATING    box_create sent CREATE; programs are queued. Left by CREATED or FAILED.
 *   BUILDING    after CREATED or box_adopt: the stream is open. Left by HELLO, FAILED, GONE or EOF.
 *   READY       after HELLO
 *   LOST        failed: on_lost was called, link closed, box killed. Left only by box_destroy.
 *   DESTROYING  box_destroy killed it and sent DESTROY. Left by GONE.
 *   GONE        on_gone is due from the loop, then it is freed
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
	bool created;
	bool engine_has; /* the engine may still have parts of it */
	uint32_t required;
	uint32_t create_seq, destroy_seq, freeze_seq; /* requests in progress; 0: none */
	bool freeze_asked, freeze_wanted;             /* last sent; wanted */
	bool adopted;                                 /* by an earlier daemon */
	int fds[ENGINE_FD_COUNT];                     /* owned, -1: none */
	struct counters_files counters;
	struct box_network_usage traffic_before; /* of an adopted box: not ours to report */
	struct box_network_usage traffic_last;   /* of an interface that was removed */
	bool had_traffic;
	struct refusals refusals;
	struct timer *timer; /* owned: for the engine's reason, or GONE */
	struct link_events link_events;
};

/** native_maker - who makes and keeps boxes like @spec; NULL: network host is not enabled. */
struct native *native_maker(struct native *n, const struct box_spec *spec);
/** native_identity - hash of the engine's build and options. */
uint64_t native_identity(const struct native_config *config);
/** native_is_of_past - end or failure of an earlier daemon's box, not a reply to us. */
bool native_is_of_past(const struct engine_reply *reply);
/** native_bad_reply - ERR_PROTOCOL: "millibox-engine @what". Return: -1. */
int native_bad_reply(struct error *err, const char *what);
/** native_probe - ask the engine what the host supports. */
int native_probe(int sock, struct engine_probe *ret_probe, struct helper_group *ret_group,
                 struct error *err) attr_must_check;
/** native_wait_readable - Return: 0, -ETIMEDOUT, or another negative errno. */
int native_wait_readable(int fd, uint64_t deadline_us);
/**
 * native_handover_find - find an earlier daemon's engine for our state directory. One of another
 * build or configuration is ended and waited for.
 */
bool native_handover_find(const struct native_config *config, struct native_engine *ret_engine);
/** native_handover_end - end an earlier daemon's engine that is not wanted any more, if any. */
void native_handover_end(const struct native_config *config);
/** native_handover_list - fill n->kept. Fails if the engine is unusable. */
int native_handover_list(struct native *n, struct error *err) attr_must_check;
void native_kept_free(struct native_kept *kept);
/**
 * native_sort_fds - move received descriptors to the slots of @mask, leaving -1 in @fds. Return: 0,
 * or -1: mismatch.
 */
int native_sort_fds(int *fds, size_t count, uint32_t mask, int ret_fds[ENGINE_FD_COUNT]);

/** native_new - takes ownership of @sock; @pid 0: not our child. */
struct driver *native_new(const struct native_config *config, int sock, pid_t pid,
                          const struct engine_probe *probe);
int native_start_engine(const struct native_config *config, struct native_engine *ret_engine,
                        struct error *err) attr_must_check;
/** native_wait_engine - reap it within @timeout_us. Return: wait status, or -ETIMEDOUT. */
int native_wait_engine(pid_t pid, uint64_t timeout_us);

/** native_zygote - number of @spec's zygote; 0: none available. */
uint32_t native_zygote(struct native *n, const struct box_spec *spec);
enum box_start native_start_of(const struct box_spec *spec, uint32_t start);
/** native_send - sets @request's seq. Return: seq, or 0 if the engine is gone. */
uint32_t native_send(struct native *n, struct engine_request *request);
/** native_lose - the engine is gone or unreliable: end all boxes. From the loop. */
void native_lose(struct native *n, const struct error *err);

/**
 * native_reply - check and handle one message of the engine; takes the descriptors. Return: 0, or
 * -1: protocol violation.
 */
int native_reply(struct native *n, const void *data, size_t len, int *fds, size_t fds_count,
                 struct error *err) attr_must_check;

int native_box_create(struct driver *d, const struct box_spec *spec,
                      const struct box_events *events, struct box **ret_box, struct error *err);
int native_box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
                     struct box **ret_box, bool *ret_frozen, struct error *err);
int native_box_freeze(struct box *box, bool frozen, struct error *err);
void native_box_claim(struct box *box);
/** native_box_unreached - a change of its network was not sent: the box ends, on_lost follows. */
void native_box_unreached(struct native_box *b);
void native_box_reach(struct box *box);
void native_box_counters(struct box *box, enum counters_for purpose,
                         struct box_counters *ret_counters);
bool native_box_traffic(struct box *box, struct box_network_usage *ret);
void native_box_ask_denials(struct box *box);
bool native_box_settle_denials(struct box *box, uint64_t wait_us);
size_t native_box_denials(struct box *box, struct box_denial *ret, size_t max);
void native_box_destroy(struct box *box);
/** native_box_free - without a callback. */
void native_box_free(struct native_box *b);
/** native_box_created - takes ownership of @fds, one per enum engine_fd. */
void native_box_created(struct native_box *b, const struct engine_created *created,
                        const int fds[ENGINE_FD_COUNT]);
void native_box_frozen(struct native_box *b);
void native_box_failed(struct native_box *b, const struct error *err);
void native_box_gone(struct native_box *b, const struct engine_gone *gone);
void native_box_orphaned(struct native_box *b, const struct error *err);

/* native_filter.c */

/** native_filter_hash - SHA-256 of the filters of payloads and of the agent, one after the other,
 * as the kernel gets them; "": the file at @agent_path does not have them. */
void native_filter_hash(const char *agent_path, char ret_hex[DRIVER_HASH_LEN]);
