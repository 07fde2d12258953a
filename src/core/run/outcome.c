/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/outcome.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>

#include "base/attr.h"
#include "base/str.h"
#include "driver/driver.h"
#include "egress/order.h"
#include <stdio.h>

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

#define KIND_SYSCALL     "syscall"
#define KIND_LIMIT       "limit"
#define KIND_NETWORK     "network"
#define RULE_SECCOMP     "seccomp"
#define SYSCALL_NAME_MAX 31
#define RULE_NETWORK     "network.allow"

/* In order of precedence. */
static const struct limit_rule {
	enum outcome_limit limit;
	const char *rule; /* mechanism, for denials[] */
	bool on_success;  /* applies after success too */
} rules[] = {
	{OUTCOME_LIMIT_TIME, "deadline", .on_success = false},
	{OUTCOME_LIMIT_HOST_MEMORY, "admission.memory_low", .on_success = false},
	{OUTCOME_LIMIT_MEMORY, "memory", .on_success = false},
	{OUTCOME_LIMIT_CPU, "rlimit", .on_success = false},
	{OUTCOME_LIMIT_PROCESSES, "pids", .on_success = false},
	{OUTCOME_LIMIT_DISK, "tmpfs", .on_success = false},
	{OUTCOME_LIMIT_OUTPUT, "output", .on_success = true},
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
	struct denial denial = {.kind = KIND_SYSCALL, .rule = RULE_SECCOMP, .count = count};

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

/* By enum egress_reason. A name that cannot be resolved is no denial: the program sees the error.
 */
static const char *const network_rules[EGRESS_REASON_COUNT] = {
	[EGRESS_BAD_REQUEST] = "network.request",
	[EGRESS_BAD_NAME] = "network.request",
	[EGRESS_NO_HOST] = RULE_NETWORK,
	[EGRESS_PORT] = RULE_NETWORK,
	[EGRESS_TUNNEL] = RULE_NETWORK,
	[EGRESS_METHOD] = RULE_NETWORK,
	[EGRESS_PATH] = RULE_NETWORK,
	[EGRESS_ADDRESS] = "network.address",
	[EGRESS_NO_TLS] = "network.tls",
	[EGRESS_NO_SNI] = "network.tls",
	[EGRESS_OTHER_SNI] = "network.tls",
	[EGRESS_ECH] = "network.tls",
	[EGRESS_BYTES] = "egress.max_bytes",
};

void outcome_add_network(struct outcome *out, const struct box_denial *d)
{
	struct denial denial = {
		.kind = KIND_NETWORK, .rule = network_rules[d->reason], .count = d->count};

	if (!denial.rule || out->denials_count >= DENIALS_MAX - DENIALS_FOR_LIMITS)
		return;
	(void)snprintf(denial.what, sizeof(denial.what), "%.88s:%u", d->host[0] ? d->host : "?",
	               d->port);
	put_denial(out, &denial);
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
			.kind = KIND_LIMIT, .rule = rules[i].rule, .count = hits[rules[i].limit]};
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
}

/* In the store: JSON. Output and report are stored separately, as bytes. */

enum member_type {
	MEMBER_BOOL,
	MEMBER_INT,
	MEMBER_U32,
	MEMBER_U64, /* COUNTER_UNKNOWN is -1 */
};

static const struct {
	const char *name;
	enum member_type type;
	size_t offset;
} members[] = {
#define MEMBER(type, field)                                                                        \
	{                                                                                          \
#field, MEMBER_##type, offsetof(struct outcome, field)                             \
	}
	MEMBER(BOOL, exited),
	MEMBER(INT, exit_code),
	MEMBER(INT, signal),
	MEMBER(BOOL, out_truncated),
	MEMBER(BOOL, err_truncated),
	MEMBER(BOOL, handler),
	MEMBER(U64, stdout_bytes),
	MEMBER(U64, stderr_bytes),
	MEMBER(U64, duration_us),
	MEMBER(U64, start_us),
	MEMBER(U64, queue_us),
	MEMBER(U64, cpu_us),
	MEMBER(U64, memory_peak_bytes),
	MEMBER(U64, processes_peak),
	MEMBER(U64, read_bytes),
	MEMBER(U64, write_bytes),
	MEMBER(U32, layers),
	MEMBER(U32, layers_missing),
	MEMBER(U32, start),
	MEMBER(BOOL, pooled),
#undef MEMBER
};

/* What is read must point to static storage. "": not a word of ours. */
static const char *literal(const json_t *text)
{
	static const char *const words[] = {KIND_SYSCALL, KIND_LIMIT, KIND_NETWORK, RULE_SECCOMP,
	                                    "native",     "fake",     "strict",     "best-effort"};
	const char *s = json_string_value(text);

	for (size_t i = 0; s && i < ARRAY_SIZE(words); i++)
		if (str_equal(words[i], s))
			return words[i];
	for (size_t i = 0; s && i < ARRAY_SIZE(rules); i++)
		if (str_equal(rules[i].rule, s))
			return rules[i].rule;
	for (size_t i = 0; s && i < ARRAY_SIZE(network_rules); i++)
		if (network_rules[i] && str_equal(network_rules[i], s))
			return network_rules[i];
	return "";
}

static int64_t get_member(const struct outcome *o, size_t i)
{
	const char *at = (const char *)o + members[i].offset;

	switch (members[i].type) {
	case MEMBER_BOOL:
		return *(const bool *)at;
	case MEMBER_INT:
		return *(const int *)(const void *)at;
	case MEMBER_U32:
		return *(const uint32_t *)(const void *)at;
	case MEMBER_U64:
	default:
		return (int64_t) * (const uint64_t *)(const void *)at;
	}
}

static void set_member(struct outcome *o, size_t i, int64_t value)
{
	char *at = (char *)o + members[i].offset;

	switch (members[i].type) {
	case MEMBER_BOOL:
		*(bool *)at = value != 0;
		break;
	case MEMBER_INT:
		*(int *)(void *)at = (int)value;
		break;
	case MEMBER_U32:
		*(uint32_t *)(void *)at = (uint32_t)value;
		break;
	case MEMBER_U64:
	default:
		*(uint64_t *)(void *)at = (uint64_t)value;
		break;
	}
}

char *outcome_to_json(const struct outcome *outcome, bool session_reset)
{
	json_t *denials = json_array(), *j;
	char *text;
	int r = 0;

	for (unsigned i = 0; i < outcome->denials_count; i++) {
		const struct denial *d = &outcome->denials[i];

		r |= json_array_append_new(
			denials, json_pack("{s:s, s:s, s:s, s:I}", "kind", d->kind, "what", d->what,
		                           "rule", d->rule, "count", (json_int_t)d->count));
	}
	j = json_pack("{s:s, s:s?, s:s, s:s, s:o, s:i, s:i}", "status",
	              status_names[outcome->status], "limit", limit_names[outcome->limit], "driver",
	              outcome->driver ? outcome->driver : "", "isolation",
	              outcome->isolation ? outcome->isolation : "", "denials", denials,
	              "artifacts_truncated", outcome->artifacts.truncated, "session_reset",
	              session_reset);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		r |= json_object_set_new(j, members[i].name, json_integer(get_member(outcome, i)));
	text = json_dumps(j, JSON_COMPACT);
	assert(r == 0 && text); /* all texts are ASCII */
	json_decref(j);
	return text;
}

static void read_denials(const json_t *list, struct outcome *o)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		struct denial *d = &o->denials[o->denials_count];
		const char *what = json_string_value(json_object_get(item, "what"));

		if (o->denials_count == DENIALS_MAX || !what ||
		    str_copy(d->what, sizeof(d->what), what) < 0)
			return;
		d->kind = literal(json_object_get(item, "kind"));
		d->rule = literal(json_object_get(item, "rule"));
		d->count = (uint64_t)json_integer_value(json_object_get(item, "count"));
		o->denials_count++;
	}
}

/* Return: index, or @count. */
static int find_name(const json_t *text, const char *const *names, int count)
{
	const char *s = json_string_value(text);

	for (int i = 0; s && i < count; i++)
		if (names[i] && str_equal(names[i], s))
			return i;
	return count;
}

int outcome_from_json(const char *text, struct outcome *ret_outcome, bool *ret_session_reset)
{
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct outcome o = {0};
	int status = find_name(json_object_get(j, "status"), status_names, OUTCOME_STATUS_COUNT);
	int limit = find_name(json_object_get(j, "limit"), limit_names, OUTCOME_LIMIT_COUNT);

	if (!json_is_object(j) || status == OUTCOME_STATUS_COUNT) {
		json_decref(j);
		return -EINVAL;
	}
	o.status = (enum outcome_status)status;
	o.limit = limit == OUTCOME_LIMIT_COUNT ? OUTCOME_LIMIT_NONE : (enum outcome_limit)limit;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		set_member(&o, i, json_integer_value(json_object_get(j, members[i].name)));
	o.driver = literal(json_object_get(j, "driver"));
	o.isolation = literal(json_object_get(j, "isolation"));
	read_denials(json_object_get(j, "denials"), &o);
	o.artifacts.truncated |= json_integer_value(json_object_get(j, "artifacts_truncated")) != 0;
	*ret_session_reset = json_integer_value(json_object_get(j, "session_reset")) != 0;
	*ret_outcome = o;
	json_decref(j);
	return 0;
}
