/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/size.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/policy/policy_internal.h"

#include <stdio.h>

#define PAGE_BYTES        4096ULL
#define TMP_BYTES         (512 * MIB)
#define SHM_BYTES         (64 * MIB)
#define WORKSPACE_INODES  50000
#define TMP_INODES        20000
#define COMPILE_WORKSPACE (64 * MIB)
#define INODE_EVERY_BYTES 4096
#define INODES_MIN        256
/* Open files per process and per box: the host has one limit for all. */
#define NOFILE_MAX         1024
#define NOFILE_MIN         64
#define NOFILE_BOX         131072
#define COMPILE_TIMEOUT_US (60 * USEC_PER_SEC)

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
	ROW(POLICY_BACKGROUND, "timeout",                "timeout",       LIMIT_TIMEOUT_MIN_US, "limits.background_time", "limits.background_time", "limits.background_time_max", print_seconds),
/* clang-format on */
#undef ROW
};
static_assert(ARRAY_SIZE(names) == POLICY_LIMIT_COUNT, "every limit has a row");

const char *policy_limit_field(enum policy_limit_id id)
{
	return names[id].field;
}

void policy_limit_print(enum policy_limit_id id, uint64_t value, char *ret_text, size_t size)
{
	names[id].print(value, ret_text, size);
}

struct limit {
	enum policy_limit_id id;
	uint64_t asked;
	uint64_t fallback, max; /* settings */
};

struct bound {
	uint64_t value;
	struct policy_rule rule;
};

/* The least with which programs of the language work. 0: any. */
static uint64_t least_of(const struct policy_deciding *in, enum policy_limit_id id)
{
	const struct runner *r = in->d.runner;
	const uint64_t values[POLICY_LIMIT_COUNT] = {
		[POLICY_TIMEOUT] = r ? r->limits.timeout_us : 0,
		[POLICY_MEMORY] = r ? r->limits.memory_bytes : 0,
		[POLICY_DISK] = r ? r->limits.disk_bytes : 0,
		[POLICY_PROCESSES] = r ? r->limits.max_processes : 0,
	};

	return values[id];
}

static const struct policy_rule half_rule = {.by = POLICY_BY_PROGRAM,
                                             .path = "half of resources.memory"};

/* A default that the language cannot work with is raised, within the maximum. */
static struct bound raise_fallback(const struct policy_deciding *in, const struct limit *l,
                                   struct bound value)
{
	static const struct policy_rule by_language = {.by = POLICY_BY_PROGRAM,
	                                               .path = "default of the language"};
	uint64_t least = least_of(in, l->id);
	const struct runner *r = in->d.runner;

	if (l->id == POLICY_TIMEOUT && r && r->time_percent > 100 &&
	    value.value * r->time_percent / 100 > least)
		least = value.value * r->time_percent / 100;
	return least > value.value ? (struct bound){least, by_language} : value;
}

/* A request that names its memory and no disk gets half of it: the workspace is kept there, and
 * packages need room. The operator's own default in a policy stays. */
static struct bound raise_disk(const struct policy_deciding *in, struct bound value)
{
	const struct policy_grant *memory = &in->d.grants[POLICY_MEMORY];

	if (memory->asked == 0 || value.rule.by != POLICY_BY_SETTING ||
	    memory->granted / 2 <= value.value)
		return value;
	return (struct bound){memory->granted / 2, half_rule};
}

static const struct policy_rule life_rule = {.by = POLICY_BY_PROGRAM,
                                             .path = "the rest of the session's lifetime"};

/* The lifetime of a session bounds what runs in it. A setting of 0 adds no bound. */
static struct bound within_life(const struct policy_deciding *in, const struct limit *l,
                                struct bound value)
{
	uint64_t left = in->request->left_us;

	if (left == 0) /* in no session yet */
		left = in->rules->config->session_lifetime_us;
	if (l->id != POLICY_BACKGROUND || (value.value > 0 && value.value <= left))
		return value;
	return (struct bound){left, life_rule};
}

static struct bound fallback_of(const struct policy_deciding *in, const struct limit *l)
{
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_number *n = &in->policies[i]->limits[l->id].fallback;

		if (n->by.line)
			return (struct bound){n->value,
			                      policy_rule_of(&n->by, names[l->id].fallback)};
	}
	return within_life(in, l,
	                   (struct bound){l->fallback,
	                                  {.by = POLICY_BY_SETTING, .path = names[l->id].setting}});
}

static struct bound max_of(const struct policy_deciding *in, const struct limit *l)
{
	struct bound least = {l->max, {.by = POLICY_BY_SETTING, .path = names[l->id].setting_max}};
	uint64_t cores = in->rules->cores * 1000ULL;

	least = within_life(in, l, least);
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
		value = raise_fallback(in, l, fallback_of(in, l));
	if (l->asked == 0 && l->id == POLICY_DISK)
		value = raise_disk(in, value);
	if (value.value > max.value)
		value = max;
	in->d.grants[l->id] = (struct policy_grant){.asked = l->asked,
	                                            .granted = value.value,
	                                            .rule = value.rule,
	                                            .most = max.value,
	                                            .most_rule = max.rule};
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

/* Workspace, /tmp and /dev/shm are tmpfs, charged to the box's memory. Together they stay below it
 * (1/2 + 1/4 + 1/8): else "disk full" becomes an OOM kill. */
static void divide_memory(struct box_limits *limits, uint64_t disk)
{
	limits->workspace_bytes = whole_pages(min_of(disk, limits->memory_bytes / 2));
	limits->tmp_bytes = whole_pages(min_of(TMP_BYTES, limits->memory_bytes / 4));
	limits->shm_bytes = whole_pages(min_of(SHM_BYTES, limits->memory_bytes / 8));
	limits->workspace_inodes = inodes_for(limits->workspace_bytes, WORKSPACE_INODES);
	limits->tmp_inodes = inodes_for(limits->tmp_bytes, TMP_INODES);
}

static void decide_areas(struct policy_deciding *in)
{
	struct policy_grant *disk = &in->d.grants[POLICY_DISK];
	struct box_limits *limits = &in->d.spec.limits;

	if (disk->granted > limits->memory_bytes / 2)
		disk->rule = half_rule;
	divide_memory(limits, disk->granted);
	disk->granted = limits->workspace_bytes;
}

/* Open files are limited per process only, but use the host's kernel memory: a box with many
 * processes gets fewer files for each. */
static uint32_t files_for(uint32_t pids)
{
	uint64_t files = min_of(NOFILE_BOX / pids, NOFILE_MAX);

	return files < NOFILE_MIN ? NOFILE_MIN : (uint32_t)files;
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
	const struct limit brief = {POLICY_TIMEOUT, r->timeout_us, c->timeout_us,
	                            c->timeout_max_us};
	const struct limit background = {POLICY_BACKGROUND, r->timeout_us, c->background_us,
	                                 c->background_max_us};
	const struct limit time = r->background ? background : brief;
	const struct limit limits[] = {
		time,
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
	in->d.timeout_us = g[time.id].granted;
	in->d.output_bytes = g[POLICY_OUTPUT].granted;
	/* The settings' ranges bound both. */
	out->cpu_millicores = (uint32_t)g[POLICY_CPU].granted;
	out->pids = (uint32_t)g[POLICY_PROCESSES].granted;
	out->memory_bytes = g[POLICY_MEMORY].granted = whole_pages(g[POLICY_MEMORY].granted);
	out->nofile = files_for(out->pids);
	in->d.spec.exec_tmp = false; /* compiled programs belong in the workspace */
	decide_areas(in);
	return 0;
}

/* What the compiler needs, at least what the program gets, within the maxima. */
static uint64_t compile_limit(const struct policy_deciding *in, const struct limit *l,
                              uint64_t needed)
{
	uint64_t granted = in->d.grants[l->id].granted;
	uint64_t max = max_of(in, l).value;

	return min_of(needed > granted ? needed : granted, max > granted ? max : granted);
}

/* A compiler works in /tmp: what it needs is there. The workspace has the request's files, and what
 * it makes. */
static void divide_compiler_memory(struct box_limits *limits, uint64_t files, uint64_t disk)
{
	uint64_t most;

	divide_memory(limits, files > COMPILE_WORKSPACE ? files : COMPILE_WORKSPACE);
	most = limits->memory_bytes / 8 * 7 - limits->workspace_bytes - limits->shm_bytes;
	limits->tmp_bytes =
		whole_pages(min_of(disk > limits->tmp_bytes ? disk : limits->tmp_bytes, most));
	limits->tmp_inodes = inodes_for(limits->tmp_bytes, TMP_INODES);
}

void policy_decide_compile_limits(struct policy_deciding *in)
{
	const struct config *c = in->rules->config;
	const struct runner_limits *needed = &in->d.runner->compile_limits;
	const struct limit time = {POLICY_TIMEOUT, 0, 0, c->timeout_max_us};
	const struct limit memory = {POLICY_MEMORY, 0, 0, c->memory_max_bytes};
	const struct limit disk = {POLICY_DISK, 0, 0, c->disk_max_bytes};
	const struct limit processes = {POLICY_PROCESSES, 0, 0, c->processes_max};
	struct box_limits *out = &in->d.compile_limits;

	*out = in->d.spec.limits;
	in->d.compile_timeout_us =
		min_of(needed->timeout_us ? needed->timeout_us : COMPILE_TIMEOUT_US,
	               max_of(in, &time).value);
	out->memory_bytes = whole_pages(compile_limit(in, &memory, needed->memory_bytes));
	out->pids = (uint32_t)compile_limit(in, &processes, needed->max_processes);
	out->nofile = files_for(out->pids);
	divide_compiler_memory(out, in->d.spec.limits.workspace_bytes,
	                       compile_limit(in, &disk, needed->disk_bytes));
	in->d.share_builds = in->policies_count > 0;
	for (size_t i = 0; i < in->policies_count; i++)
		in->d.share_builds &= in->policies[i]->share_builds.value == POLICY_SHARE_ALL;
}

static uint64_t asked_of(const struct policy_deciding *in, enum policy_limit_id id)
{
	const struct run_request *r = in->request;
	uint64_t time = r->timeout_soft ? 0 : r->timeout_us;
	const uint64_t values[POLICY_LIMIT_COUNT] = {
		[POLICY_TIMEOUT] = r->background ? 0 : time,
		[POLICY_BACKGROUND] = r->background ? time : 0,
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
	if (rule->by == POLICY_BY_PROGRAM && rule->path == half_rule.path)
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
