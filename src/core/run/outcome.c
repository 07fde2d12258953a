/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/outcome.h"

#include <signal.h>

#include "base/attr.h"
#include "base/str.h"
#include "driver/driver.h"

/*
 * Theory of operation: which of several true facts decides.
 *
 * Status, first match wins:
 *   cancelled  the caller ended it
 *   timed out  by the daemon's clock, which the program cannot forge
 *   lost       the box vanished. After an OOM kill in it (the agent may be among the dead) the
 *              program failed
 *   ended      exit status or signal, from the agent's wait
 *
 * Limit: the first row of the table that was hit and could have ended the program. Success was not
 * ended by a limit: a fork refused and retried is only a denial. Truncated output always counts. A
 * cancelled run names no limit. denials[] lists every hit.
 */

static const char *const status_names[] = {
	[OUTCOME_SUCCESS] = "success",     [OUTCOME_FAILED] = "failed",
	[OUTCOME_TIMEOUT] = "timeout",     [OUTCOME_CRASHED] = "crashed",
	[OUTCOME_CANCELLED] = "cancelled",
};
static_assert(ARRAY_SIZE(status_names) == OUTCOME_STATUS_COUNT, "every status has a name");

static const char *const limit_names[] = {
	[OUTCOME_LIMIT_NONE] = NULL,
	[OUTCOME_LIMIT_TIME] = "time",
	[OUTCOME_LIMIT_CPU] = "cpu",
	[OUTCOME_LIMIT_MEMORY] = "memory",
	[OUTCOME_LIMIT_PROCESSES] = "processes",
	[OUTCOME_LIMIT_OUTPUT] = "output",
	[OUTCOME_LIMIT_DISK] = "disk",
};
static_assert(ARRAY_SIZE(limit_names) == OUTCOME_LIMIT_COUNT, "every limit has a row");

const char *outcome_status_name(enum outcome_status status)
{
	return status_names[status];
}

const char *outcome_limit_name(enum outcome_limit limit)
{
	return limit_names[limit];
}

/* In order of precedence. */
static const struct limit_rule {
	enum outcome_limit limit;
	const char *rule; /* mechanism, for denials[] */
	bool on_success;  /* applies after success too */
} rules[] = {
	{OUTCOME_LIMIT_TIME, "deadline", .on_success = false},
	{OUTCOME_LIMIT_MEMORY, "memory", .on_success = false},
	{OUTCOME_LIMIT_CPU, "rlimit", .on_success = false},
	{OUTCOME_LIMIT_PROCESSES, "pids", .on_success = false},
	{OUTCOME_LIMIT_DISK, "tmpfs", .on_success = false},
	{OUTCOME_LIMIT_OUTPUT, "output", .on_success = true},
};

/* SIGXFSZ: a file exceeded RLIMIT_FSIZE, the size of the workspace. */
static void count_hits(const struct outcome_evidence *e, uint64_t ret_hits[OUTCOME_LIMIT_COUNT])
{
	uint64_t oom_kills = e->counters.oom_kills, pids_denied = e->counters.pids_denied;
	int signo = e->ended && e->signalled ? e->status : 0;

	ret_hits[OUTCOME_LIMIT_NONE] = 0;
	ret_hits[OUTCOME_LIMIT_TIME] = e->timed_out;
	ret_hits[OUTCOME_LIMIT_MEMORY] = oom_kills == COUNTER_UNKNOWN ? 0 : oom_kills;
	ret_hits[OUTCOME_LIMIT_CPU] = signo == SIGXCPU;
	ret_hits[OUTCOME_LIMIT_PROCESSES] = pids_denied == COUNTER_UNKNOWN ? 0 : pids_denied;
	ret_hits[OUTCOME_LIMIT_DISK] = e->disk_full || signo == SIGXFSZ;
	ret_hits[OUTCOME_LIMIT_OUTPUT] = (uint64_t)e->out_truncated + (uint64_t)e->err_truncated;
}

/* Rows of denials[] reserved for limits, so that a flood of denied calls hides none. */
#define DENIALS_FOR_LIMITS ARRAY_SIZE(rules)
static_assert(DENIALS_FOR_LIMITS < DENIALS_MAX, "room for others is left");

static void put_denial(struct outcome *out, const struct denial *denial)
{
	if (out->denials_count < DENIALS_MAX)
		out->denials[out->denials_count++] = *denial;
}

void outcome_add_syscall(struct outcome *out, const char *what, uint64_t count)
{
	struct denial denial = {.kind = "syscall", .rule = "seccomp", .count = count};

	for (unsigned i = 0; i < out->denials_count; i++)
		if (str_equal(out->denials[i].what, what)) {
			out->denials[i].count = count;
			return;
		}
	/* Too long for the name of a system call. */
	if (str_copy(denial.what, sizeof(denial.what), what) < 0)
		return;
	if (out->denials_count < DENIALS_MAX - DENIALS_FOR_LIMITS)
		put_denial(out, &denial);
}

static enum outcome_status judge_status(const struct outcome_evidence *e, bool out_of_memory)
{
	if (e->cancelled)
		return OUTCOME_CANCELLED;
	if (e->timed_out)
		return OUTCOME_TIMEOUT;
	if (e->lost && out_of_memory)
		return OUTCOME_FAILED;
	if (e->lost || !e->ended)
		return OUTCOME_CRASHED;
	return e->signalled || e->status != 0 ? OUTCOME_FAILED : OUTCOME_SUCCESS;
}

/* Exit code and signal are set whenever the kernel reported them, even after the deadline. */
static void judge_ending(const struct outcome_evidence *e, struct outcome *out)
{
	out->exited = false;
	out->signal = 0;
	out->exit_code = 0;
	if (e->ended && !e->lost) {
		out->exited = true;
		out->signal = e->signalled ? e->status : 0;
		out->exit_code = e->signalled ? 128 + e->status : e->status;
	} else if (out->status == OUTCOME_FAILED) {
		out->exited = true; /* the kernel killed the whole box */
		out->signal = SIGKILL;
		out->exit_code = 128 + SIGKILL;
	}
}

void outcome_judge(const struct outcome_evidence *evidence, struct outcome *out)
{
	uint64_t hits[OUTCOME_LIMIT_COUNT];

	count_hits(evidence, hits);
	out->status = judge_status(evidence, hits[OUTCOME_LIMIT_MEMORY] > 0);
	out->limit = OUTCOME_LIMIT_NONE;
	out->out_truncated = evidence->out_truncated;
	out->err_truncated = evidence->err_truncated;
	judge_ending(evidence, out);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct denial denial = {
			.kind = "limit", .rule = rules[i].rule, .count = hits[rules[i].limit]};
		bool decides = out->status != OUTCOME_CANCELLED &&
		               (out->status != OUTCOME_SUCCESS || rules[i].on_success);

		if (denial.count == 0)
			continue;
		if (decides && out->limit == OUTCOME_LIMIT_NONE)
			out->limit = rules[i].limit;
		(void)!str_copy(denial.what, sizeof(denial.what), limit_names[rules[i].limit]);
		put_denial(out, &denial);
	}
}

void outcome_take_facts(const struct exec_facts *facts, uint64_t output_bytes,
                        struct outcome_evidence *evidence, struct outcome *out)
{
	evidence->ended = true;
	evidence->signalled = facts->signalled;
	evidence->status = facts->status;
	evidence->disk_full = facts->disk_full;
	evidence->out_truncated |= facts->stdout_bytes > output_bytes;
	evidence->err_truncated |= facts->stderr_bytes > output_bytes;
	out->duration_us = facts->duration_us;
	out->cpu_us = facts->cpu_user_us + facts->cpu_system_us;
	out->memory_peak_bytes = facts->max_rss_kib * 1024;
	out->read_bytes = facts->read_bytes;
	out->write_bytes = facts->write_bytes;
	out->stdout_bytes = facts->stdout_bytes;
	out->stderr_bytes = facts->stderr_bytes;
}

void outcome_take_usage(const struct outcome_evidence *evidence, struct outcome *out)
{
	const struct box_counters *c = &evidence->counters;

	if (c->cpu_us != COUNTER_UNKNOWN)
		out->cpu_us = c->cpu_us;
	if (c->memory_peak_bytes != COUNTER_UNKNOWN || out->memory_peak_bytes == 0)
		out->memory_peak_bytes = c->memory_peak_bytes;
	out->processes_peak = c->pids_peak;
}

void outcome_done(struct outcome *out)
{
	buf_done(&out->out);
	buf_done(&out->err);
	buf_done(&out->report);
	artifacts_done(&out->artifacts);
}
