/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/size.h"
#include "core/config/config.h"
#include "core/policy/policy_internal.h"

#include <stdio.h>

#define PAGE_BYTES        4096ULL
#define TMP_BYTES         (128 * MIB)
#define SHM_BYTES         (64 * MIB)
#define WORKSPACE_INODES  50000
#define TMP_INODES        20000
#define INODE_EVERY_BYTES 4096
#define INODES_MIN        256
/* Open files per process and per box: the host has one limit for all. */
#define NOFILE_MAX 1024
#define NOFILE_MIN 64
#define NOFILE_BOX 131072

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void print_seconds(uint64_t us, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "%.10g", (double)us / (double)USEC_PER_SEC);
}

static void print_number(uint64_t value, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "%llu", (unsigned long long)value);
}

static const struct limit_name {
	const char *field; /* request */
	const char *name;  /* in answers */
	uint64_t min;
	const char *fallback, *max, *exceed; /* policy */
	const char *setting, *setting_max;   /* settings */
	void (*print)(uint64_t value, char *ret_text, size_t size);
} names[] = {
#define ROW(id, field, name, min, key, setting, setting_max, print)                                \
	[id] = {field,   name,        min,  key ".default", key ".max", key ".on_exceed",          \
	        setting, setting_max, print}
	/* clang-format off */
	ROW(POLICY_TIMEOUT,   "timeout",                 "timeout",       LIMIT_TIMEOUT_MIN_US, "limits.timeout",        "limits.timeout",        "limits.timeout_max",   print_seconds),
	ROW(POLICY_MEMORY,    "resources.memory",        "memory",        LIMIT_MEMORY_MIN,     "limits.memory",         "limits.memory",         "limits.memory_max",    format_size),
	ROW(POLICY_DISK,      "resources.disk",          "disk",          LIMIT_DISK_MIN,       "limits.disk",           "limits.disk",           "limits.disk_max",      format_size),
	ROW(POLICY_CPU,       "resources.cpu",           "cpu",           LIMIT_CPU_MIN,        "limits.cpu",            "limits.cpu",            "limits.cpu_max",       format_cpu),
	ROW(POLICY_PROCESSES, "resources.max_processes", "max_processes", LIMIT_PROCESSES_MIN,  "limits.processes",      "limits.processes",      "limits.processes_max", print_number),
	ROW(POLICY_OUTPUT,    "resources.max_output",    "max_output",    1,                     "limits.output",         "limits.output",         "limits.output_max",    format_size),
	ROW(POLICY_IDLE,      "timeout",                 "timeout",       1,                     "sessions.idle_timeout", "sessions.idle_timeout", "sessions.lifetime",    print_seconds),
	ROW(POLICY_LIFETIME,  "lifetime",                "lifetime",      1,                     "sessions.lifetime",     "sessions.lifetime",     "sessions.lifetime",    print_seconds),
/* clang-format on */
#undef ROW
};
static_assert(ARRAY_SIZE(names) == POLICY_LIMIT_COUNT, "every limit has a row");

struct limit {
	enum policy_limit_id id;
	uint64_t asked;
	uint64_t fallback, max; /* settings */
};

struct bound {
	uint64_t value;
	struct policy_rule rule;
};

static struct bound fallback_of(const struct policy_deciding *in, const struct limit *l)
{
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_number *n = &in->policies[i]->limits[l->id].fallback;

		if (n->by.line)
			return (struct bound){n->value,
			                      policy_rule_of(&n->by, names[l->id].fallback)};
	}
	return (struct bound){l->fallback, {.by = POLICY_BY_SETTING, .path = names[l->id].setting}};
}

static struct bound max_of(const struct policy_deciding *in, const struct limit *l)
{
	struct bound least = {l->max, {.by = POLICY_BY_SETTING, .path = names[l->id].setting_max}};
	uint64_t cores = in->rules->cores * 1000ULL;

	/* The setting may be 0: all cores. */
	if (l->id == POLICY_CPU && (l->max == 0 || l->max > cores))
		least = (struct bound){cores, {.by = POLICY_BY_DRIVER, .path = "cores"}};
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_number *n = &in->policies[i]->limits[l->id].max;

		if (n->by.line && n->value < least.value)
			least = (struct bound){n->value, policy_rule_of(&n->by, names[l->id].max)};
	}
	return least;
}

static int decide_limit(struct policy_deciding *in, const struct limit *l)
{
	const struct limit_name *name = &names[l->id];
	const struct bound max = max_of(in, l);
	struct bound value = {l->asked, {.by = POLICY_BY_REQUEST, .path = name->field}};
	bool refuses_excess = false;
	char bound[32], asked[32];

	if (l->asked != 0 && l->asked < name->min) {
		name->print(name->min, bound, sizeof(bound));
		return error_field(in->err, name->field, "must be at least %s", bound);
	}
	for (size_t i = 0; i < in->policies_count; i++)
		refuses_excess |=
			in->policies[i]->limits[l->id].on_exceed.value == POLICY_EXCEED_REFUSE;
	if (l->asked > max.value && refuses_excess) {
		name->print(max.value, bound, sizeof(bound));
		name->print(l->asked, asked, sizeof(asked));
		return policy_refuse(in, ERR_DENIED, name->field, &max.rule,
		                     "%s is above the maximum of %s", asked, bound);
	}
	if (l->asked == 0)
		value = fallback_of(in, l);
	if (value.value > max.value)
		value = max;
	in->d.grants[l->id] = (struct policy_grant){l->asked, value.value, value.rule};
	return 0;
}

static uint32_t inodes_for(uint64_t bytes, uint32_t most)
{
	uint64_t n = min_of(bytes / INODE_EVERY_BYTES, most);

	/* Inodes are memory too: many in a small area would end in an OOM kill, not in ENOSPC. */
	return n < INODES_MIN ? INODES_MIN : (uint32_t)n;
}

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes - bytes % PAGE_BYTES;
}

static const struct policy_rule half_rule = {.by = POLICY_BY_PROGRAM,
                                             .path = "half of resources.memory"};

/* Workspace, /tmp and /dev/shm are tmpfs, charged to the box's memory. Together they stay below it
 * (1/2 + 1/4 + 1/8): else "disk full" becomes an OOM kill. */
static void decide_areas(struct policy_deciding *in)
{
	struct policy_grant *disk = &in->d.grants[POLICY_DISK];
	struct box_limits *limits = &in->d.spec.limits;
	uint64_t half = limits->memory_bytes / 2;

	if (disk->granted > half)
		disk->rule = half_rule;
	disk->granted = limits->workspace_bytes = whole_pages(min_of(disk->granted, half));
	limits->tmp_bytes = whole_pages(min_of(TMP_BYTES, limits->memory_bytes / 4));
	limits->shm_bytes = whole_pages(min_of(SHM_BYTES, limits->memory_bytes / 8));
	limits->workspace_inodes = inodes_for(limits->workspace_bytes, WORKSPACE_INODES);
	limits->tmp_inodes = inodes_for(limits->tmp_bytes, TMP_INODES);
}

static int decide_all(struct policy_deciding *in, const struct limit *limits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (decide_limit(in, &limits[i]) < 0)
			return -1;
	return 0;
}

/* Idle time cannot exceed the lifetime. */
static int decide_spans(struct policy_deciding *in)
{
	const struct config *c = in->rules->config;
	struct policy_grant *idle = &in->d.grants[POLICY_IDLE];
	const struct policy_grant *life = &in->d.grants[POLICY_LIFETIME];
	const struct limit limits[] = {
		{POLICY_IDLE, in->session->idle_timeout_us, c->session_idle_us,
	         c->session_lifetime_us},
		{POLICY_LIFETIME, in->session->lifetime_us, c->session_lifetime_us,
	         c->session_lifetime_us},
	};

	if (decide_all(in, limits, ARRAY_SIZE(limits)) < 0)
		return -1;
	if (idle->granted > life->granted) {
		idle->granted = life->granted;
		idle->rule = life->rule;
	}
	in->d.idle_us = idle->granted;
	in->d.lifetime_us = life->granted;
	return 0;
}

static void decide_overflow(struct policy_deciding *in)
{
	static const char path[] = "limits.output.on_overflow";

	in->d.overflow = (struct policy_rule){.by = POLICY_BY_PROGRAM, .path = path};
	for (size_t i = 0; i < in->policies_count && !in->d.kill_on_overflow; i++) {
		const struct policy_number *n = &in->policies[i]->on_overflow;

		if (!n->by.line)
			continue;
		in->d.overflow = policy_rule_of(&n->by, path);
		in->d.kill_on_overflow = n->value == POLICY_OVERFLOW_KILL;
	}
}

int policy_decide_limits(struct policy_deciding *in)
{
	const struct config *c = in->rules->config;
	const struct run_request *r = in->request;
	const struct limit limits[] = {
		{POLICY_TIMEOUT, r->timeout_us, c->timeout_us, c->timeout_max_us},
		{POLICY_MEMORY, r->memory_bytes, c->memory_bytes, c->memory_max_bytes},
		{POLICY_DISK, r->disk_bytes, c->disk_bytes, c->disk_max_bytes},
		{POLICY_CPU, r->cpu_millicores, c->cpu_millicores, c->cpu_max_millicores},
		{POLICY_PROCESSES, r->max_processes, c->processes, c->processes_max},
		{POLICY_OUTPUT, r->max_output_bytes, c->output_bytes, c->output_max_bytes},
	};
	struct policy_grant *g = in->d.grants;
	struct box_limits *out = &in->d.spec.limits;

	if (decide_all(in, limits, ARRAY_SIZE(limits)) < 0 || (in->session && decide_spans(in) < 0))
		return -1;
	decide_overflow(in);
	in->d.timeout_us = g[POLICY_TIMEOUT].granted;
	in->d.output_bytes = g[POLICY_OUTPUT].granted;
	/* The settings' ranges bound both. */
	out->cpu_millicores = (uint32_t)g[POLICY_CPU].granted;
	out->pids = (uint32_t)g[POLICY_PROCESSES].granted;
	out->memory_bytes = g[POLICY_MEMORY].granted = whole_pages(g[POLICY_MEMORY].granted);
	/* Open files are limited per process only, but use the host's kernel memory: a box with
	 * many processes gets fewer files for each. */
	out->nofile = (uint32_t)min_of(NOFILE_BOX / out->pids, NOFILE_MAX);
	if (out->nofile < NOFILE_MIN)
		out->nofile = NOFILE_MIN;
	in->d.spec.exec_tmp = false; /* compiled programs belong in the workspace */
	decide_areas(in);
	return 0;
}

static uint64_t asked_of(const struct policy_deciding *in, enum policy_limit_id id)
{
	const struct run_request *r = in->request;
	const uint64_t values[POLICY_LIMIT_COUNT] = {
		[POLICY_TIMEOUT] = r->timeout_soft ? 0 : r->timeout_us,
		[POLICY_MEMORY] = r->memory_bytes,
		[POLICY_DISK] = r->disk_bytes,
		[POLICY_CPU] = r->cpu_millicores,
		[POLICY_PROCESSES] = r->max_processes,
		[POLICY_OUTPUT] = r->max_output_bytes,
		[POLICY_IDLE] = in->session ? in->session->idle_timeout_us : 0,
		[POLICY_LIFETIME] = in->session ? in->session->lifetime_us : 0,
	};

	return values[id];
}

static void explain_cut(const struct policy_rule *rule, unsigned cores, char *ret_why, size_t size)
{
	if (rule->by == POLICY_BY_PROGRAM)
		(void)snprintf(ret_why, size, "files are kept in memory, at most %s", rule->path);
	else if (rule->by == POLICY_BY_DRIVER)
		(void)snprintf(ret_why, size, "the host has %u cores", cores);
	else if (rule->by == POLICY_BY_POLICY)
		(void)snprintf(ret_why, size, "the maximum of policy %s (%s)", rule->policy,
		               rule->path);
	else if (rule->by == POLICY_BY_SETTING)
		(void)snprintf(ret_why, size, "the operator's maximum (%s)", rule->path);
	else
		(void)snprintf(ret_why, size, "not more than %s", rule->path);
}

void policy_note_cuts(struct policy_deciding *in)
{
	struct policy_cuts *cuts = NULL;

	for (int id = 0; id < POLICY_LIMIT_COUNT; id++) {
		const struct policy_grant *g = &in->d.grants[id];
		uint64_t asked = asked_of(in, (enum policy_limit_id)id);
		struct policy_cut *cut;

		/* Rounding to pages is none. */
		if (asked <= g->granted || g->rule.by == POLICY_BY_NOBODY ||
		    (g->rule.by == POLICY_BY_REQUEST && g->rule.path == names[id].field))
			continue;
		if (!cuts)
			cuts = NEW(struct policy_cuts);
		cut = &cuts->list[cuts->count++];
		cut->name = names[id].name;
		cut->field = names[id].field;
		names[id].print(asked, cut->asked, sizeof(cut->asked));
		names[id].print(g->granted, cut->granted, sizeof(cut->granted));
		explain_cut(&g->rule, in->rules->cores, cut->why, sizeof(cut->why));
	}
	in->d.cuts = cuts;
}
