/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what core/ knows of backends. A driver delivers a byte stream to an agent and a kill switch;
 * all else goes over the wire (link.c), written once for all drivers. Nothing in core compares a
 * driver's name: capabilities say what a backend cannot guarantee.
 *
 * One thread, one loop: no function blocks, every callback comes from the loop, never from inside
 * the call that caused it.
 */

#include "base/error.h"
#include "driver/box_exec.h"
#include "driver/box_spec.h"
#include "driver/counters.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct driver;
struct box;

#define BOX_NETWORK_BIT(network) (1u << (network))

struct driver_caps {
	uint32_t layers;          /* mask of enum wire_layer every box of it will have */
	uint32_t required_layers; /* those without which no box is used, see native.c */
	uint32_t networks;        /* mask of enum box_network that boxes can have, besides none */
	bool can_mount;           /* folders of the host in a box */
	bool has_mcp;             /* tools of MCP servers for code in a box */
	uint32_t landlock_abi;
	uint32_t boxes_max;
	uint32_t daemon_uid; /* an id kept for the daemon itself; 0: none */
	bool can_freeze;
	bool can_keep;      /* boxes may outlive this daemon */
	bool has_roots;     /* boxes can stand on roots other than the host's */
	bool counts_usage;  /* box_counters are real */
	const char *cgroup; /* "v1", "v2", "hybrid", "none": for people */
	const char *ids;    /* "range", "subid", "single": for people */
};

/*
 * Callbacks of a box. @ctx is the caller's. After box_destroy only on_gone follows, and after it
 * nothing. Each may call box_* functions, box_destroy included; the box is freed only after on_gone
 * returned. All must be there.
 */
struct box_events {
	void *ctx;
	/* The agent said hello and has all required layers; programs may be started (they may also
	 * be handed over before: they are sent as soon as the stream is there). */
	void (*on_ready)(void *ctx);
	void (*on_started)(void *ctx, uint32_t exec_id);
	void (*on_output)(void *ctx, uint32_t exec_id, enum output_stream stream, const char *data,
	                  size_t len);
	/* Untrusted bytes from the runner. */
	void (*on_report)(void *ctx, uint32_t exec_id, const char *data, size_t len);
	/* A system call was refused @count times so far; @what is a name or a number as text. */
	void (*on_denial)(void *ctx, uint32_t exec_id, const char *what, uint64_t count);
	void (*on_done)(void *ctx, uint32_t exec_id, const struct exec_facts *facts);
	/* This execution could not be started; the box itself goes on. */
	void (*on_exec_failed)(void *ctx, uint32_t exec_id, const struct error *err);
	/* The box is of no more use: it could not be built, its agent vanished or broke the
	 * protocol. Everything unfinished is lost. on_gone follows after box_destroy. */
	void (*on_lost)(void *ctx, const struct error *err);
	/* Nothing of the box is left on the host. */
	void (*on_gone)(void *ctx);
	/* What box_prepare was asked for waits for its box_run. May be NULL where nothing is
	 * prepared. */
	void (*on_prepared)(void *ctx, uint32_t exec_id);
	/* Of an adopted box only, behind on_ready; may be NULL for others. One call for each
	 * execution and runner whose end was not acknowledged, in the order of their making; a
	 * negative answer ends the box (on_lost). Then on_resumed, with the largest id that was
	 * ever given, and then everything that they did, from on_started on, as if it happened now.
	 */
	int (*on_resume)(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant);
	void (*on_resumed)(void *ctx, uint32_t last_id);
	/* One that on_resume wanted forgotten has ended, in this call the first time. */
	void (*on_forgotten)(void *ctx, uint32_t exec_id);
};

/* One backend. All functions run in the daemon, on the loop, and must not block. */
struct driver_ops {
	const char *name;
	/* Starts making a box. Failures that show later come as on_lost. */
	int (*create)(struct driver *d, const struct box_spec *spec,
	              const struct box_events *events, struct box **ret_box, struct error *err);
	/* May be NULL: no box outlives a daemon. */
	int (*adopt)(struct driver *d, const struct box_spec *spec, const struct box_events *events,
	             struct box **ret_box, bool *ret_frozen, struct error *err);
	/* May be NULL. Boxes that were kept and that nobody has adopted end. */
	void (*settle)(struct driver *d);
	/* May be NULL. Boxes that are kept are left alone by what follows: free. */
	void (*leave)(struct driver *d);
	/* May be NULL: not supported. A failure that shows later ends the box as on_lost. */
	int (*freeze)(struct box *box, bool frozen, struct error *err);
	/* May be NULL. A spare box is somebody's: from now on it is kept. By box_give. */
	void (*claim)(struct box *box);
	/* The kernel's counters, now. */
	void (*counters)(struct box *box, enum counters_for purpose,
	                 struct box_counters *ret_counters);
	/* Ends everything in the box at once; idempotent; never fails; on_gone follows. */
	void (*destroy)(struct box *box);
	/* Boxes that are left end without a callback. The loop must still be there. */
	void (*free)(struct driver *d);
};

struct driver {
	const struct driver_ops *ops;
	struct driver_caps caps;
};

/** box_create - check @spec against the driver's capabilities, then make the box. */
int box_create(struct driver *d, const struct box_spec *spec, const struct box_events *events,
               struct box **ret_box, struct error *err) attr_must_check;
/**
 * box_adopt - take over box @spec->id, which an earlier daemon made with @spec and keep. On the
 * loop, before driver_settle. ERR_NOT_FOUND: it is not there any more. *ret_frozen: it is frozen,
 * and will say nothing (not even on_ready) until it is thawed.
 */
int box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
              struct box **ret_box, bool *ret_frozen, struct error *err) attr_must_check;
/** driver_settle - all that is wanted was adopted: what is left of kept boxes ends. */
void driver_settle(struct driver *d);
/**
 * driver_leave - the daemon stops, or cannot start, and boxes that are kept (adopted or not) shall
 * outlive it. Before driver_free.
 */
void driver_leave(struct driver *d);
/**
 * box_ack - of a box that is kept: the end (on_done, on_exec_failed) of an execution or runner is
 * recorded for good; no later daemon will be told of it. Nothing in other boxes.
 */
void box_ack(struct box *box, uint32_t exec_id);
/** box_exec - hand a program over. Errors that show later come as on_exec_failed. */
int box_exec(struct box *box, const struct exec_plan *plan, struct error *err) attr_must_check;
/**
 * box_prepare - start a program's process and let it wait for its code. on_prepared follows, or
 * on_exec_failed, also when it ends while it waits. Not in a box that is kept.
 */
int box_prepare(struct box *box, const struct prepare_plan *plan,
                struct error *err) attr_must_check;
/**
 * box_give - from now on the box is somebody else's: @events are the ones that are called, and
 * @request_id (NULL: none) is whom log lines name. A spare one is kept from now on.
 */
void box_give(struct box *box, const struct box_events *events, const char *request_id);
/**
 * box_run - hand code to a runner that stays; on_started ... on_done come with @plan's id. When the
 * runner ends instead, on_done of the run says how, and on_done of the runner follows. What was
 * prepared (after on_prepared) becomes the program that box_exec would have started.
 */
int box_run(struct box *box, const struct run_plan *plan, struct error *err) attr_must_check;
/**
 * box_stdin - bytes for an execution's stdin; kept until there is room, at most BOX_STDIN_MAX of
 * them (ERR_TOO_LARGE beyond). Bytes for an execution that has ended are dropped: a writer cannot
 * know yet.
 */
int box_stdin(struct box *box, uint32_t exec_id, const void *data, size_t len,
              struct error *err) attr_must_check;
int box_stdin_end(struct box *box, uint32_t exec_id, struct error *err) attr_must_check;
int box_signal(struct box *box, uint32_t exec_id, int signo, struct error *err) attr_must_check;
void box_counters(struct box *box, enum counters_for purpose, struct box_counters *ret_counters);
int box_freeze(struct box *box, bool frozen, struct error *err) attr_must_check;
void box_destroy(struct box *box);
const char *box_id(const struct box *box);

/*
 * Files of the workspace. Each operation is done inside the box with the rights of its payload;
 * several may go on at a time (BOX_FILE_OPS_MAX), beside executions.
 */
#define BOX_FILE_OPS_MAX 8
#define BOX_FILE_WINDOW  (256u * 1024) /* bytes on their way in one direction of one operation */
#define BOX_SHA256_LEN   32

struct box_file;

enum box_file_op {
	BOX_FILE_STAT,
	BOX_FILE_LIST,
	BOX_FILE_READ,
	BOX_FILE_WRITE,
	BOX_FILE_MKDIR,
	BOX_FILE_MOVE,
	BOX_FILE_REMOVE,
	BOX_FILE_TAR,     /* a directory as an archive */
	BOX_FILE_UNTAR,   /* an archive into a directory */
	BOX_FILE_CHANGES, /* regular files that changed, without hidden ones, with digests */
	BOX_FILE_OP_COUNT
};

enum box_file_type {
	BOX_FILE_REGULAR,
	BOX_FILE_DIRECTORY,
	BOX_FILE_LINK,
	BOX_FILE_OTHER,
	BOX_FILE_TYPE_COUNT
};

/* Borrowed for the call. */
struct box_file_request {
	enum box_file_op op;
	const char *path; /* relative to the workspace; "": the workspace itself */
	const char *to;   /* MOVE: new path. LIST: only names after this one. NULL: "" */
	uint64_t offset;  /* READ: from here. CHANGES: since (ns of the wall clock) */
	uint64_t length;  /* READ: at most. WRITE, (UN)TAR: refuse more. CHANGES: bytes to hash */
	uint32_t mode;    /* WRITE: permission bits */
	uint32_t limit;   /* LIST, TAR, UNTAR, CHANGES: entries at most */
	bool recursive;   /* LIST, REMOVE */
	bool parents;     /* WRITE, MKDIR, MOVE, UNTAR: make the directories on the way */
	bool replace;     /* MOVE: over a file that is there */
};

/* Untrusted, as all names a payload can choose: any bytes but NUL. Borrowed for the call. */
struct box_file_entry {
	enum box_file_type type;
	const char *path; /* below that of the request; "": that one itself */
	uint64_t size, mtime_ns, ctime_ns, inode;
	uint32_t mode;
	const char *target;    /* of a link, else "" */
	const uint8_t *sha256; /* BOX_SHA256_LEN bytes, or NULL */
};

struct box_file_summary {
	bool truncated; /* there was more than the limit */
	uint64_t entries, bytes;
};

/*
 * From the loop only, never from inside a call. on_done or on_failed is the last of them, and after
 * it, and after box_file_cancel, the operation is gone. All must be there.
 */
struct box_file_events {
	void *ctx;
	void (*on_entry)(void *ctx, const struct box_file_entry *entry);
	/* Bytes of READ and TAR. More than BOX_FILE_WINDOW come only after box_file_grant. */
	void (*on_data)(void *ctx, const char *data, size_t len);
	/* box_file_write takes bytes again. */
	void (*on_room)(void *ctx);
	void (*on_done)(void *ctx, const struct box_file_summary *summary);
	void (*on_failed)(void *ctx, const struct error *err);
};

/**
 * box_file_open - begin. When the box is lost on_failed comes before its on_lost; whoever destroys
 * the box cancels its operations before.
 */
int box_file_open(struct box *box, const struct box_file_request *request,
                  const struct box_file_events *events, struct box_file **ret_file,
                  struct error *err) attr_must_check;
/** box_file_write - for WRITE and UNTAR. Return: how many of the bytes were taken; when not all,
 * on_room says when to go on. */
size_t box_file_write(struct box_file *file, const char *data, size_t len);
/** box_file_end - those were all. Without it nothing is written. */
void box_file_end(struct box_file *file);
/** box_file_grant - @bytes of on_data were passed on: as many more may come. */
void box_file_grant(struct box_file *file, size_t bytes);
void box_file_cancel(struct box_file *file);
/** box_layers - mask of enum wire_layer this box really has. */
uint32_t box_layers(const struct box *box);
/** box_start - how its first program came to be; true from its on_started on. */
enum box_start box_start(const struct box *box);
void driver_free(struct driver *d);
