/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the files of the driver over engine/engine.h: engine_driver.c the driver and its
 * socket, engine_command.c an engine's command line and identity, engine_spawn.c starts it,
 * engine_handover.c takes over a running one, engine_return.c starts one again that has ended,
 * engine_zygote.c chooses zygotes, engine_reply.c handles replies, engine_box.c one box.
 *
 * With network host there are two native engines, each with a struct engine_driver of its own. Core
 * knows the first one, which passes on what is about a box of the second. A box knows its own.
 */

#include "base/list.h"
#include "driver/engine_driver.h"
#include "driver/internal.h"
#include "engine/engine.h"
#include "service/refusals.h"
#include <sys/types.h>

struct engine_starter;
struct map;
struct timer;
struct watch;

/* Engine's probe, with newuidmap and a cgroup sweep. */
#define ENGINE_PROBE_TIMEOUT_US (20 * 1000000ULL)
/* Until a slow end is logged: killing a process tree under a tight memory limit can take
 * seconds. */
#define ENGINE_GONE_TIMEOUT_US (30 * 1000000ULL)
/* For the engine's reason when a box ended before HELLO. */
#define ENGINE_REASON_TIMEOUT_US (2 * 1000000ULL)
#define ENGINE_END_TIMEOUT_US    (10 * 1000000ULL)
/* For HELLO of an adopted box, while not frozen. */
#define ENGINE_HELLO_TIMEOUT_US (15 * 1000000ULL)
#define ENGINE_PROBE_SEQ        1

/* A zygote of the engine's; its number is its index plus 1. */
struct zygote_slot {
	char command[BOX_ZYGOTE_LEN]; /* "": none */
	char modules[BOX_MODULES_LEN];
	char tenant[BOX_TENANT_LEN];
	uint64_t used_us;
};

struct engine_driver {
	struct driver base;
	struct loop *loop;   /* NULL until attached */
	struct watch *watch; /* owned */
	int sock;            /* owned; -1 when the engine is gone */
	pid_t pid;           /* the engine; 0: reaped, or not our child */
	int pidfd;           /* owned: of an engine taken over; else -1 */
	bool leaving;        /* do not end kept boxes any more */
	struct list kept;    /* struct engine_kept: not adopted, owned */
	struct list boxes;   /* struct engine_box, owned */
	size_t boxes_count;
	struct counters_absent absent; /* from the boxes' groups */
	size_t counted_max;            /* boxes that may keep counter files open */
	struct map *by_id;             /* @boxes by id */
	struct list waiting; /* struct engine_waiting: requests the socket had no room for, owned */
	uint32_t seq;
	struct engine_driver
		*host_network; /* makes boxes with network host; owned; NULL: there are none */
	struct zygote_slot zygotes[ENGINE_ZYGOTES_MAX];
	bool has_zygotes;
	char *name;                     /* owned */
	bool is_native, strict, keeps;  /* of its configuration */
	struct engine_starter *starter; /* borrowed; NULL: it is not started again */
	uint32_t number;                /* of its command */
	bool is_probing;                /* started again: its probe is due */
	struct timer *again;            /* owned: the next try, or the probe is late */
	void (*on_engine_lost)(void *ctx, const struct error *err);
	uint32_t owner_uid; /* of images and packages; 0: its own caps.daemon_uid */
	void *ctx;
};

struct engine_kept {
	struct list node; /* engine_driver.kept */
	char id[ENGINE_ID_LEN];
	struct engine_created created;
	int fds[ENGINE_FD_COUNT]; /* owned, -1: none */
};

struct engine_process {
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
enum engine_box_state {
	ENGINE_BOX_CREATING,
	ENGINE_BOX_BUILDING,
	ENGINE_BOX_READY,
	ENGINE_BOX_LOST,
	ENGINE_BOX_DESTROYING,
	ENGINE_BOX_GONE,
	ENGINE_BOX_STATE_COUNT
};

struct engine_box {
	struct box base;
	struct list node; /* engine_driver.boxes */
	enum engine_box_state state;
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

/** engine_driver_maker - who makes and keeps boxes like @spec; NULL: network host is not enabled.
 */
struct engine_driver *engine_driver_maker(struct engine_driver *e, const struct box_spec *spec);
/** engine_identity - hash of the engine's build and options. */
uint64_t engine_identity(const struct engine_config *config);
/** engine_is_of_past - end or failure of an earlier daemon's box, not a reply to us. */
bool engine_is_of_past(const struct engine_reply *reply);
/** engine_bad_reply - ERR_PROTOCOL: "millibox-engine @what". Return: -1. */
int engine_bad_reply(struct error *err, const char *what);
/** engine_check_probe - whether what an engine says of itself makes sense. */
int engine_check_probe(const struct engine_probe *probe, struct error *err) attr_must_check;
/** engine_probe - ask the engine what the host supports. */
int engine_probe(int sock, struct engine_probe *ret_probe, struct helper_group *ret_group,
                 struct error *err) attr_must_check;
/** engine_wait_readable - Return: 0, -ETIMEDOUT, or another negative errno. */
int engine_wait_readable(int fd, uint64_t deadline_us);
/**
 * engine_handover_find - find an earlier daemon's engine for our state directory. One of another
 * build or configuration is ended and waited for.
 */
bool engine_handover_find(const struct engine_config *config, struct engine_process *ret_engine);
/** engine_handover_end - end an earlier daemon's engine that is not wanted any more, if any. */
void engine_handover_end(const struct engine_config *config);
/** engine_handover_list - fill e->kept. Fails if the engine is unusable. */
int engine_handover_list(struct engine_driver *e, struct error *err) attr_must_check;
void engine_kept_free(struct engine_kept *kept);
/**
 * engine_sort_fds - move received descriptors to the slots of @mask, leaving -1 in @fds. Return: 0,
 * or -1: mismatch.
 */
int engine_sort_fds(int *fds, size_t count, uint32_t mask, int ret_fds[ENGINE_FD_COUNT]);

/** engine_driver_new - takes ownership of @sock; @pid 0: not our child. */
struct driver *engine_driver_new(const struct engine_config *config, int sock, pid_t pid,
                                 const struct engine_probe *probe);
/** engine_driver_probed - its boxes have what @probe says. Fails if that is too little. */
int engine_driver_probed(struct engine_driver *e, const struct engine_probe *probe,
                         struct error *err) attr_must_check;
/** engine_driver_listen - to the engine, from now on. */
int engine_driver_listen(struct engine_driver *e, struct error *err) attr_must_check;
/** engine_driver_notice_end - if an engine that is started again has ended, say so now. */
void engine_driver_notice_end(struct engine_driver *e);
/** engine_driver_drop - @err: why the engine is not used any more: end all boxes. */
void engine_driver_drop(struct engine_driver *e, const struct error *err);
/** engine_fork - Return: 0, with the socket of the process, or -1. */
int engine_fork(const char *program, char *const *argv, int *ret_sock, pid_t *ret_pid,
                struct error *err) attr_must_check;
int engine_start(const struct engine_config *config, struct engine_process *ret_process,
                 struct error *err) attr_must_check;
/** engine_start_by - the same by the starter. */
int engine_start_by(struct engine_starter *starter, uint32_t number,
                    struct engine_process *ret_process, struct error *err) attr_must_check;
/** engine_wait_end - reap it within @timeout_us. Return: wait status, or -ETIMEDOUT. */
int engine_wait_end(pid_t pid, uint64_t timeout_us);

/* engine_return.c */

/** engine_return_later - it failed: try again after a while. */
void engine_return_later(struct engine_driver *e, const struct error *err);
/** engine_return_probed - the probe of an engine that was started again. */
int engine_return_probed(struct engine_driver *e, const struct engine_probe *probe,
                         struct error *err) attr_must_check;
/** engine_return_attach - the loop is there: try an engine that was not started. */
void engine_return_attach(struct engine_driver *e);
/** engine_return_stop - no more tries. */
void engine_return_stop(struct engine_driver *e);

/** engine_zygote - number of @spec's zygote; 0: none available. */
uint32_t engine_zygote_of(struct engine_driver *e, const struct box_spec *spec);
enum box_start engine_start_of(const struct box_spec *spec, uint32_t start);
/** engine_driver_send - sets @request's seq. Return: seq, or 0 if the engine is gone. */
uint32_t engine_driver_send(struct engine_driver *e, struct engine_request *request);
/** engine_driver_lose - the engine is gone or unreliable: end all boxes. From the loop. */
void engine_driver_lose(struct engine_driver *e, const struct error *err);

/**
 * engine_reply - check and handle one message of the engine; takes the descriptors. Return: 0, or
 * -1: protocol violation.
 */
int engine_reply(struct engine_driver *e, const void *data, size_t len, int *fds, size_t fds_count,
                 struct error *err) attr_must_check;

int engine_box_create(struct driver *d, const struct box_spec *spec,
                      const struct box_events *events, struct box **ret_box, struct error *err);
int engine_box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
                     struct box **ret_box, bool *ret_frozen, struct error *err);
int engine_box_freeze(struct box *box, bool frozen, struct error *err);
void engine_box_claim(struct box *box);
/** engine_box_unreached - a change of its network was not sent: the box ends, on_lost follows. */
void engine_box_unreached(struct engine_box *b);
void engine_box_reach(struct box *box);
void engine_box_counters(struct box *box, enum counters_for purpose,
                         struct box_counters *ret_counters);
bool engine_box_traffic(struct box *box, struct box_network_usage *ret);
void engine_box_ask_denials(struct box *box);
bool engine_box_settle_denials(struct box *box, uint64_t wait_us);
size_t engine_box_denials(struct box *box, struct box_denial *ret, size_t max);
void engine_box_destroy(struct box *box);
/** engine_box_free - without a callback. */
void engine_box_free(struct engine_box *b);
/** engine_box_created - takes ownership of @fds, one per enum engine_fd. */
void engine_box_created(struct engine_box *b, const struct engine_created *created,
                        const int fds[ENGINE_FD_COUNT]);
void engine_box_frozen(struct engine_box *b);
void engine_box_failed(struct engine_box *b, const struct error *err);
void engine_box_gone(struct engine_box *b, const struct engine_gone *gone);
void engine_box_orphaned(struct engine_box *b, const struct error *err);

/* engine_filter.c */

/** engine_filter_hash - SHA-256 of the filters of payloads and of the agent, one after the other,
 * as the kernel gets them; "": the file at @agent_path does not have them. */
void engine_filter_hash(const char *agent_path, char ret_hex[DRIVER_HASH_LEN]);
