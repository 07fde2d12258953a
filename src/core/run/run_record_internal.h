/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: internals of a record, for core/run and core/session. */

#include "base/list.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/run/run_report.h"
#include "core/store/store.h"

struct db_job;
struct map;
struct timer;

struct run_record_owner {
	char *key;              /* owned: tenant/session */
	struct list executions; /* struct run_record.node, oldest first */
	size_t count;
};

/* Of a stream. The run limits its output; this is the last defence. */
#define RUN_RECORD_OUTPUT_MAX (256u * 1024 * 1024)
/* For run_record.rolling: twice as much, and what comes during a delivery, fit. */
#define RUN_RECORD_ROLLING_MAX (RUN_RECORD_OUTPUT_MAX / 4)

/* Ended records of one tenant; freed with the last. */
struct run_record_share {
	char tenant[TENANT_NAME_MAX + 1];
	struct list ended; /* struct run_record.share_node, in order of end */
	size_t count, bytes;
};

struct run_records {
	struct loop *loop;
	struct store *store;     /* NULL: nothing is stored */
	struct metrics *metrics; /* NULL: metrics off */
	struct audit *audit;     /* NULL: audit off */
	/* run_records_set_files */
	bool (*has_files)(void *ctx, const char *tenant, const char *session_id);
	void *files_ctx;
	struct map *by_id;
	struct map *owners; /* by tenant/session */
	struct list ended;  /* struct run_record.ended_node, in order of end */
	size_t ended_count, ended_bytes;
	size_t max_count, max_bytes;
	struct map *shares; /* struct run_record_share, by tenant */
	size_t shares_count;
	struct run_record_share *largest; /* cached; NULL: unknown */
	struct list forgotten;            /* struct run_record.ended_node: watched or unwritten */
};

/* One event: a range of its stream's output. */
struct run_piece {
	uint32_t at, len;
	uint8_t kind;
};

struct run_watch {
	struct list node; /* execution.watches */
	struct run_record *execution;
	uint64_t next;    /* number of the next event */
	run_event_fn *fn; /* NULL: unwatched */
	void *ctx;
};

struct run_record {
	struct list node; /* run_record_owner.executions */
	struct list ended_node;
	struct list share_node;
	struct run_record_share *share;      /* ENDED and known: its tenant's */
	struct run_records *all;             /* NULL: one-shot */
	void (*on_unwatched)(void *ctx);     /* one-shot: watcher left; takes control_ctx */
	char code_hash[RUN_REPORT_HASH_LEN]; /* one-shot; "": audit off */
	struct run_record_owner *owner;      /* NULL: forgotten */
	char id[40];
	char tenant[TENANT_NAME_MAX + 1];
	char *session_id; /* owned, as all strings */
	char *request_id; /* never NULL */
	char *key_id;     /* NULL: no key was needed */
	char *language;
	char *code;
	size_t code_len;
	uint64_t timeout_us;
	struct policy_cuts *cuts; /* owned; NULL: none */
	enum run_record_state state;
	uint64_t created_ms, started_ms, completed_ms;
	uint64_t paused_ms; /* without the current pause */
	bool has_outcome, session_reset;
	uint64_t receipt; /* enum receipt_form */
	struct outcome outcome;
	struct error failure;
	size_t bytes; /* ENDED: for the bounds */

	struct buf output[OUTPUT_COUNT];
	struct run_piece *pieces; /* owned; event number n is pieces[n - 1 - dropped] */
	size_t pieces_count, pieces_cap;
	uint64_t dropped;            /* events before the first of @pieces */
	uint64_t sealed;             /* up to this number they were delivered and are final */
	uint64_t last[OUTPUT_COUNT]; /* number of its last event; 0: none */
	size_t rolling;              /* a terminal: at least this much output is kept; 0: all */
	bool background;
	bool spec, later;    /* see run_record_info */
	unsigned stops;      /* watchers that are behind */
	struct list watches; /* struct run_watch, owned */
	struct timer *pace;  /* owned; NULL: few events */
	bool due;
	bool delivering;

	uint64_t session_ms;
	char *request;           /* owned; until stored */
	struct store_item dirty; /* in the store's list: unwritten changes */
	struct db_job *writing;  /* latest unfinished write */
	bool stored;             /* the row exists */
	bool begun;              /* may have begun; persisted before it does */
	bool withdrawn;          /* rejected or deleted: never write it again */
	run_record_stored_fn *hold;
	void *hold_ctx;
	run_record_stored_fn *on_stored;
	void *on_stored_ctx;

	bool exact;
	/* Called once, when its end is on disk (without a store: has happened) or it is freed;
	 * possibly inside run_record_ended or run_record_failed. NULL: none, or called. */
	void (*settled)(void *ctx);
	void *settled_ctx;
	void (*cancel)(void *ctx);
	int (*input)(void *ctx, const void *data, size_t len, bool end, struct error *err);
	void *control_ctx;
	const struct run_control *control; /* NULL: none; with @control_ctx */
};

/* What else can be done to a session's run. */
struct run_control {
	int (*resize)(void *ctx, uint16_t rows, uint16_t cols, struct error *err);
	int (*signal)(void *ctx, int signo, struct error *err);
	void (*allow_output)(void *ctx);
	size_t (*unread)(void *ctx); /* bytes of stdin */
};

/** run_record_new_unkept - one-shot: without event log and code. */
struct run_record *run_record_new_unkept(const struct run_record_new *what,
                                         const struct audit *audit);
/** run_record_free - it must be in no table. Frees its watches. */
void run_record_free(struct run_record *e);
/** run_record_settle - its end is on disk, or it is freed: call @settled. */
void run_record_settle(struct run_record *e);
/** run_record_add_event - START or END. One-shot: calls the watcher directly. */
void run_record_add_event(struct run_record *e, enum run_event_kind kind);
/** run_record_hold - call @fn once stored; the run waits for it. */
void run_record_hold(struct run_record *e, run_record_stored_fn *fn, void *ctx);
/** run_record_withdraw - rejected: remove it from all tables. */
void run_record_withdraw(struct run_record *e, const struct error *err);
/** run_record_was_stored - result of its first write. @e may be gone afterwards. */
void run_record_was_stored(struct run_record *e, const struct error *err);
/** run_records_remember - add an ended one from the store. Freed instead if another record in
 * memory has its id. */
void run_records_remember(struct run_records *all, struct run_record *e);
/** run_records_enter - add one from the store that has not ended. */
void run_records_enter(struct run_records *all, struct run_record *e);
struct run_record *run_record_new_blank(struct run_records *all);
void run_record_add_piece(struct run_record *e, enum run_event_kind kind, uint32_t at,
                          uint32_t len);
void run_record_stop_delivery(struct run_record *e);
/** run_record_held - bytes of its output and events, while it runs. */
size_t run_record_held(const struct run_record *e);
/** run_record_keep_latest - a terminal: forget all output but about the latest @bytes. */
void run_record_keep_latest(struct run_record *e, size_t bytes);
