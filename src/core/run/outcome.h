/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how a run ended: the one result object that every dialect renders. Status, limit, times and
 * usage come from the kernel by way of agent and counters. @report comes from the runner, that is
 * from the untrusted program: it never changes a status field.
 */

#include "base/buf.h"
#include "core/run/artifacts.h"
#include "core/run/trace.h"
#include "driver/counters.h"
#include <stdbool.h>
#include <stdint.h>

struct exec_facts;

enum outcome_status {
	OUTCOME_SUCCESS,   /* exit code 0 */
	OUTCOME_FAILED,    /* non-zero exit, exception or signal */
	OUTCOME_TIMEOUT,   /* the deadline passed */
	OUTCOME_CRASHED,   /* the box was lost */
	OUTCOME_CANCELLED, /* the caller ended it, or went away */
	OUTCOME_STATUS_COUNT
};

/* The limit that ended the execution, or that cut its output. */
enum outcome_limit {
	OUTCOME_LIMIT_NONE,
	OUTCOME_LIMIT_TIME,
	OUTCOME_LIMIT_CPU,
	OUTCOME_LIMIT_MEMORY,
	OUTCOME_LIMIT_PROCESSES,
	OUTCOME_LIMIT_OUTPUT,
	OUTCOME_LIMIT_DISK,
	OUTCOME_LIMIT_COUNT
};

struct denial {
	const char *kind; /* "syscall" or "limit": literal */
	char what[32];    /* "mount", "processes" */
	const char *rule; /* "seccomp", "pids", "memory", "tmpfs": literal */
	uint64_t count;
};

#define DENIALS_MAX 32

struct outcome {
	char execution_id[40]; /* exec_YYYYMMDD_xxxxxxxx */
	enum outcome_status status;
	enum outcome_limit limit;
	bool exited;    /* exit_code is meaningful */
	int exit_code;  /* 128 + signal when signalled, as shells say it */
	int signal;     /* 0: none */
	struct buf out; /* owned */
	struct buf err;
	bool out_truncated, err_truncated;
	bool handler;      /* a handler was called: what stands between its markers is no output */
	struct buf report; /* owned; raw JSON of the runner, not yet believed */
	uint64_t stdout_bytes, stderr_bytes;
	uint64_t duration_us; /* of the program */
	uint64_t start_us;    /* from admission until the program started */
	bool pooled;          /* its box had waited for it */
	uint64_t queue_us;    /* from arrival until admission */
	uint64_t cpu_us;
	uint64_t memory_peak_bytes; /* COUNTER_UNKNOWN where nothing counts it */
	uint64_t processes_peak;
	uint64_t read_bytes, write_bytes;
	struct denial denials[DENIALS_MAX];
	unsigned denials_count;
	uint32_t layers; /* masks of enum wire_layer */
	uint32_t layers_missing;
	const char *driver; /* literal */
	uint32_t start;     /* enum box_start */
	struct artifacts artifacts;
	struct trace trace; /* shown for one-shot runs */
};

const char *outcome_status_name(enum outcome_status status);
const char *outcome_limit_name(enum outcome_limit limit); /* NULL for NONE */

/* What decides status and limit; see outcome_judge. */
struct outcome_evidence {
	bool timed_out, cancelled, lost;
	bool ended; /* exited or signalled: status below is real */
	bool signalled;
	int status;
	bool out_truncated, err_truncated;
	bool disk_full;
	struct box_counters counters;
};

/** outcome_add_syscall - the filter refused @what @count times so far; repeats replace the count.
 */
void outcome_add_syscall(struct outcome *out, const char *what, uint64_t count);
/** outcome_judge - status, limit, exit code and limit denials from the evidence; pure. */
void outcome_judge(const struct outcome_evidence *evidence, struct outcome *out);
/** outcome_take_facts - the agent's report of the end; @output_bytes is the limit per stream. */
void outcome_take_facts(const struct exec_facts *facts, uint64_t output_bytes,
                        struct outcome_evidence *evidence, struct outcome *out);
/** outcome_take_usage - what the kernel counted (in the evidence) goes before the agent's word. */
void outcome_take_usage(const struct outcome_evidence *evidence, struct outcome *out);
void outcome_done(struct outcome *out);
