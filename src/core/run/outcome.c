/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/outcome.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "base/str.h"
#include "core/run/facts.h"
#include "driver/driver.h"

/*
 * Theory of operation: which of several true facts decides.
 *
 * Status, first match wins:
 *   cancelled  the caller ended it
 *   timed out  by the daemon's clock, which the program cannot forge
 *   host       its box was ended for the host's memory: the program failed
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
	[OUTCOME_LIMIT_HOST_MEMORY] = "host_memory",
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

#define SYSCALL_NAME_MAX 31

/* In order of precedence. */
static const struct limit_rule {
	enum outcome_limit limit;
	const char *rule; /* mechanism, for denials[] */
	int error;        /* what the program sees; 0: a signal or nothing */
	bool on_success;  /* applies after success too */
} rules[] = {
	{OUTCOME_LIMIT_TIME, DENIAL_RULE_DEADLINE, 0, .on_success = false},
	{OUTCOME_LIMIT_HOST_MEMORY, DENIAL_RULE_HOST_MEMORY, 0, .on_success = false},
	{OUTCOME_LIMIT_MEMORY, DENIAL_RULE_MEMORY, 0, .on_success = false},
	{OUTCOME_LIMIT_CPU, DENIAL_RULE_RLIMIT, 0, .on_success = false},
	{OUTCOME_LIMIT_PROCESSES, DENIAL_RULE_PIDS, EAGAIN, .on_success = false},
	{OUTCOME_LIMIT_DISK, DENIAL_RULE_TMPFS, ENOSPC, .on_success = false},
	{OUTCOME_LIMIT_OUTPUT, DENIAL_RULE_OUTPUT, 0, .on_success = true},
};

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
	struct denial denial = {.kind = DENIAL_KIND_SYSCALL,
	                        .rule = DENIAL_RULE_SECCOMP,
	                        .count = count,
	                        .error = EPERM};

	for (unsigned i = 0; i < out->denials_count; i++)
		if (str_equal(out->denials[i].what, what)) {
			out->denials[i].count = count;
			return;
		}
	/* Too long for the name of a system call. */
	if (strlen(what) > SYSCALL_NAME_MAX || str_copy(denial.what, sizeof(denial.what), what) < 0)
		return;
	if (out->denials_count < DENIALS_MAX - DENIALS_FOR_LIMITS)
		put_denial(out, &denial);
}

/* Of a program or a server: printable here, as in logs and JSON. */
static void clean_text(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static bool is_same(const struct denial *a, const struct denial *b)
{
	return str_equal(a->kind, b->kind) && str_equal(a->what, b->what) &&
	       str_equal(a->rule, b->rule) && a->shared == b->shared &&
	       str_equal(a->detail ? a->detail : "", b->detail ? b->detail : "");
}

/* Refusals are handed out several times while a run is in its box. Takes what @denial owns. */
static struct denial *merge_denial(struct outcome *out, struct denial *denial)
{
	for (unsigned i = 0; i < out->denials_count; i++)
		if (is_same(&out->denials[i], denial)) {
			out->denials[i].count += denial->count;
			free(denial->detail);
			return &out->denials[i];
		}
	if (out->denials_count >= DENIALS_MAX - DENIALS_FOR_LIMITS) {
		free(denial->detail);
		return NULL;
	}
	put_denial(out, denial);
	return &out->denials[out->denials_count - 1];
}

struct denial *outcome_add_network(struct outcome *out, const struct box_denial *d, bool shared)
{
	struct denial denial = {.kind = DENIAL_KIND_NETWORK,
	                        .rule = denial_network_rule(d->reason),
	                        .count = d->count,
	                        .shared = shared};
	const char *detail = d->request[0] ? d->request : d->detail;

	if (!denial.rule)
		return NULL;
	(void)snprintf(denial.what, sizeof(denial.what), "%.88s:%u", d->host[0] ? d->host : "?",
	               d->port);
	clean_text(denial.what);
	if (detail[0]) {
		denial.detail = xstrdup(detail);
		clean_text(denial.detail);
	}
	return merge_denial(out, &denial);
}

struct denial *outcome_add_bridge(struct outcome *out, const struct box_denial *d, const char *rule,
                                  bool shared)
{
	struct denial denial = {.kind = DENIAL_KIND_NETWORK,
	                        .rule = rule,
	                        .count = d->count,
	                        .shared = shared,
	                        .error = EHOSTUNREACH,
	                        .detail = xstrdup(d->is_udp ? "UDP" : "TCP")};

	(void)snprintf(denial.what, sizeof(denial.what), "%.64s:%u", d->host, d->port);
	return merge_denial(out, &denial);
}

struct denial *outcome_add_tool(struct outcome *out, const struct box_tool_denial *d, bool shared)
{
	struct denial denial = {.kind = DENIAL_KIND_TOOL,
	                        .rule = denial_word(d->rule),
	                        .count = d->count,
	                        .shared = shared};

	(void)snprintf(denial.what, sizeof(denial.what), "%.40s%s%.50s", d->server,
	               d->server[0] ? "/" : "", d->tool[0] ? d->tool : "?");
	clean_text(denial.what);
	return merge_denial(out, &denial);
}

static enum outcome_status judge_status(const struct outcome_evidence *e, bool out_of_memory)
{
	if (e->cancelled)
		return OUTCOME_CANCELLED;
	if (e->timed_out)
		return OUTCOME_TIMEOUT;
	if (e->host_memory || (e->lost && out_of_memory))
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
	const struct box_counters *c = &evidence->counters;
	int signo = evidence->ended && evidence->signalled ? evidence->status : 0;
	const uint64_t hits[OUTCOME_LIMIT_COUNT] = {
		[OUTCOME_LIMIT_TIME] = evidence->timed_out,
		[OUTCOME_LIMIT_HOST_MEMORY] = evidence->host_memory,
		[OUTCOME_LIMIT_MEMORY] = c->oom_kills == COUNTER_UNKNOWN ? 0 : c->oom_kills,
		[OUTCOME_LIMIT_CPU] = signo == SIGXCPU,
		[OUTCOME_LIMIT_PROCESSES] = c->pids_denied == COUNTER_UNKNOWN ? 0 : c->pids_denied,
		/* SIGXFSZ: a file exceeded RLIMIT_FSIZE, the size of the workspace. */
		[OUTCOME_LIMIT_DISK] = evidence->disk_full || signo == SIGXFSZ,
		[OUTCOME_LIMIT_OUTPUT] =
			(uint64_t)evidence->out_truncated + (uint64_t)evidence->err_truncated,
	};

	out->status = judge_status(evidence, hits[OUTCOME_LIMIT_MEMORY] > 0);
	out->limit = OUTCOME_LIMIT_NONE;
	out->out_truncated = evidence->out_truncated;
	out->err_truncated = evidence->err_truncated;
	judge_ending(evidence, out);
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct denial denial = {
			.kind = DENIAL_KIND_LIMIT,
			.rule = rules[i].rule,
			.count = hits[rules[i].limit],
			.error = rules[i].error,
		};
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

void outcome_done(struct outcome *out)
{
	buf_done(&out->out);
	buf_done(&out->err);
	buf_done(&out->report);
	artifacts_done(&out->artifacts);
	diagnostics_done(&out->compile.diagnostics);
	for (unsigned i = 0; i < out->denials_count; i++) {
		free(out->denials[i].detail);
		free(out->denials[i].remedy);
	}
	out->denials_count = 0;
	facts_unref(out->facts);
	json_decref(out->receipt);
	out->facts = NULL;
	out->receipt = NULL;
}

enum outcome_limit outcome_limit_named(const char *name)
{
	for (int i = 0; name && i < OUTCOME_LIMIT_COUNT; i++)
		if (limit_names[i] && str_equal(limit_names[i], name))
			return (enum outcome_limit)i;
	return OUTCOME_LIMIT_NONE;
}
