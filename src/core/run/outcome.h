/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how a run ended: the result object that every dialect renders. Status, limit, times and
 * usage come from the kernel, through agent and counters. @report comes from the runner, that is
 * from the untrusted program, and never changes a status field.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "core/language/diagnostics.h"
#include "core/run/artifacts.h"
#include "core/run/denial.h"
#include "core/run/trace.h"
#include "driver/box_spec.h"
#include "driver/counters.h"
#include <stdbool.h>
#include <stdint.h>

struct exec_facts;
struct facts;
struct json_t;

enum outcome_status {
	OUTCOME_SUCCESS, /* exit code 0 */
	OUTCOME_FAILED,  /* non-zero exit, exception or signal */
	OUTCOME_TIMEOUT,
	OUTCOME_CRASHED,
	OUTCOME_CANCELLED, /* by the caller, or because it disconnected */
	OUTCOME_STATUS_COUNT
};

/* The limit that ended the run or cut its output. */
enum outcome_limit {
	OUTCOME_LIMIT_NONE,
	OUTCOME_LIMIT_TIME,
	OUTCOME_LIMIT_CPU,
	OUTCOME_LIMIT_MEMORY,
	OUTCOME_LIMIT_PROCESSES,
	OUTCOME_LIMIT_OUTPUT,
	OUTCOME_LIMIT_DISK,
	OUTCOME_LIMIT_HOST_MEMORY, /* the host's, not the box's: see memory_guard.h */
	OUTCOME_LIMIT_COUNT
};

/* Of OUTCOME_LIMIT_HOST_MEMORY, for users. */
#define OUTCOME_HOST_MEMORY_REASON                                                                 \
	"the host ran short of memory, and the tenant used more than its equal share"

/* Of a compiled language, see build.h. */
struct outcome_compile {
	bool used;   /* there was such a step */
	bool failed; /* the program did not run: all of the outcome is about the compiler */
	bool cached; /* the result was known */
	uint64_t duration_us;
	struct diagnostics diagnostics;
};

struct outcome {
	char execution_id[40];
	enum outcome_status status;
	enum outcome_limit limit;
	bool exited;    /* exit_code is meaningful */
	int exit_code;  /* 128 + signal when signalled, as in shells */
	int signal;     /* 0: none */
	struct buf out; /* owned */
	struct buf err;
	bool out_truncated, err_truncated;
	bool handler; /* a handler was called: the text between its markers is not output */
	bool background, terminal; /* beside the queue of its session; on a terminal */
	bool spec, later;          /* see run_record_info */
	struct buf report;         /* owned; raw JSON from the runner, untrusted */
	uint64_t stdout_bytes, stderr_bytes;
	uint64_t duration_us;
	uint64_t start_us; /* from admission to the program's start */
	bool pooled;       /* the box came from a pool */
	uint64_t queue_us; /* from arrival to admission */
	uint64_t cpu_us;
	uint64_t memory_peak_bytes; /* COUNTER_UNKNOWN if not counted */
	uint64_t processes_peak;
	uint64_t read_bytes, write_bytes;
	uint64_t net_sent, net_received, net_connections; /* COUNTER_UNKNOWN: not counted */
	bool net_shared;                  /* others ran in the box meanwhile: may be theirs */
	struct box_network_usage net_new; /* of these, not yet in the metrics; not stored */
	struct denial denials[DENIALS_MAX];
	unsigned denials_count;
	uint32_t layers;         /* masks of enum wire_layer */
	uint32_t layers_vouched; /* of .layers, what only the runtime's word shows */
	uint32_t layers_missing;
	char engine[BOX_ENGINE_LEN]; /* that made the box; "": not recorded */
	uint32_t grade;              /* enum box_grade */
	const char *isolation;       /* literal, see config_isolation_name; "": not recorded */
	uint32_t start;              /* enum box_start */
	struct artifacts artifacts;
	struct facts *facts;    /* a reference; NULL: not recorded */
	uint32_t receipt_form;  /* enum receipt_form: how much of these a result shows */
	struct json_t *receipt; /* owned: signed; NULL: not requested */
	struct outcome_compile compile;
	struct trace trace;
};

const char *outcome_status_name(enum outcome_status status);
const char *outcome_limit_name(enum outcome_limit limit); /* NULL for NONE */
/** outcome_limit_named - NONE if @name is none, or NULL. */
enum outcome_limit outcome_limit_named(const char *name);

struct outcome_evidence {
	bool timed_out, cancelled, lost;
	bool host_memory; /* its box was ended because the host ran short of memory */
	bool ended;       /* exited or signalled: @status is valid */
	bool signalled;
	int status;
	bool out_truncated, err_truncated;
	bool disk_full;
	struct box_counters counters;
};

/** outcome_add_syscall - @what was denied @count times so far; replaces an earlier count. */
void outcome_add_syscall(struct outcome *out, const char *what, uint64_t count);
/** outcome_add_network - a connection that the proxy refused. Return: NULL: it is not listed. */
struct denial *outcome_add_network(struct outcome *out, const struct box_denial *d, bool shared);
/** outcome_add_bridge - one that network bridge refused by @rule. Return: NULL: it is not listed.
 */
struct denial *outcome_add_bridge(struct outcome *out, const struct box_denial *d, const char *rule,
                                  bool shared);
/** outcome_add_tool - a call that the gateway refused. Return: its row, or NULL. */
struct denial *outcome_add_tool(struct outcome *out, const struct box_tool_denial *d, bool shared);
/** outcome_judge - pure. */
void outcome_judge(const struct outcome_evidence *evidence, struct outcome *out);
/** outcome_take_facts - the agent's report; @output_bytes is the limit per stream. */
void outcome_take_facts(const struct exec_facts *facts, uint64_t output_bytes,
                        struct outcome_evidence *evidence, struct outcome *out);
void outcome_done(struct outcome *out);

/** outcome_to_json - for the store, without output and report. Return: owned. */
char *outcome_to_json(const struct outcome *outcome, bool session_reset) attr_must_check;
/**
 * outcome_from_json - @ret_outcome has no output or report. A missing member reads as 0. Return: 0
 * or -EINVAL.
 */
int outcome_from_json(const char *text, struct outcome *ret_outcome,
                      bool *ret_session_reset) attr_must_check;
