/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config.h"
#include "core/exec.h"
#include "core/policy_env.h"
#include "core/runners.h"
#include "wire/layer.h"

#define MIB               (1024ULL * 1024)
#define PAGE_BYTES        4096ULL
#define TMP_BYTES         (128 * MIB)
#define SHM_BYTES         (64 * MIB)
#define WORKSPACE_INODES  50000
#define TMP_INODES        20000
#define INODE_EVERY_BYTES 4096
#define INODES_MIN        256
/* Open files of a process, and of a box: the host has a limit for all of them together. */
#define NOFILE_MAX   1024
#define NOFILE_MIN   64
#define NOFILE_BOX   131072
#define RUNNERS_PATH "/opt/millibox/runners"
#define SOURCE_PATH  "/run/millibox"
#define QUOTE_LEN    48

void policy_decision_done(struct policy_decision *d)
{
	str_list_free(d->argv);
	str_list_free(d->env);
	*d = (struct policy_decision){0};
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Names of callers in messages: printable and short, whatever they sent. */
static const char *quote(const char *text, char ret_quoted[QUOTE_LEN])
{
	size_t n = 0;

	for (; n < QUOTE_LEN - 4 && text[n]; n++)
		ret_quoted[n] = (char)(text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?');
	(void)snprintf(ret_quoted + n, QUOTE_LEN - n, "%s", text[n] ? "..." : "");
	return ret_quoted;
}

static int refuse_language(const struct runners *runners, const char *language, struct error *err)
{
	char known[120] = "";
	char quoted[QUOTE_LEN];
	const struct runner *r;
	size_t n = 0;

	for (size_t i = 0; (r = runners_at(runners, i)) && n < sizeof(known); i++) {
		int added = snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", r->name);

		if (added < 0)
			break;
		n += (size_t)added;
	}
	return error_field(err, "language", "unknown language '%s'; known: %s",
	                   quote(language, quoted), known);
}

static int decide_runner(const struct policy_rules *rules, const struct exec_request *request,
                         struct policy_decision *d, struct error *err)
{
	if (!request->language || !*request->language)
		return error_field(err, "language", "is required");
	d->runner = runners_find(rules->runners, request->language);
	if (!d->runner)
		return refuse_language(rules->runners, request->language, err);
	if (!d->runner->installed)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "language '%s' needs %s, which is not installed", d->runner->name,
		                 d->runner->program);
	if (request->ask && !d->runner->asks)
		return error_field(err, "event", "language '%s' has no handlers", d->runner->name);
	d->report_bytes = d->runner->report ? POLICY_REPORT_BYTES : 0;
	d->handler = request->ask != NULL;
	return 0;
}

static int check_code(const struct config *config, const struct exec_request *request,
                      struct error *err)
{
	if (!request->code || request->code_len == 0)
		return error_field(err, "code", "is empty");
	if (request->code_len > config->max_code_bytes)
		return error_set(err, ERR_TOO_LARGE, 0, "code: %zu bytes, at most %llu are taken",
		                 request->code_len, (unsigned long long)config->max_code_bytes);
	/* Interpreters disagree on what follows a NUL: what was shown and what ran could differ. */
	if (memchr(request->code, 0, request->code_len))
		return error_field(err, "code", "contains NUL");
	return 0;
}

/* One limit: what the caller asked for (0: nothing), and what the operator says about it. */
struct limit {
	const char *field;
	uint64_t asked;
	uint64_t fallback;
	uint64_t min, max;
	const char *least; /* @min in the field's own words */
};

static int decide_limit(const struct limit *l, uint64_t *ret_value, struct error *err)
{
	if (l->asked != 0 && l->asked < l->min)
		return error_field(err, l->field, "must be at least %s", l->least);
	*ret_value = min_of(l->asked != 0 ? l->asked : l->fallback, l->max);
	return 0;
}

static uint32_t inodes_for(uint64_t bytes, uint32_t most)
{
	uint64_t n = min_of(bytes / INODE_EVERY_BYTES, most);

	/* Inodes are memory too: a small area with many would end in an OOM kill, not in ENOSPC. */
	return n < INODES_MIN ? INODES_MIN : (uint32_t)n;
}

/*
 * Open files are counted per process only, and what they hold in the kernel is the host's: many
 * processes with many each could take the last of all others. A box that asks for many processes
 * gets fewer files for each.
 */
static uint32_t nofile_for(uint32_t processes)
{
	uint32_t n = NOFILE_BOX / processes;

	if (n > NOFILE_MAX)
		return NOFILE_MAX;
	return n < NOFILE_MIN ? NOFILE_MIN : n;
}

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes - bytes % PAGE_BYTES;
}

/*
 * Workspace, /tmp and /dev/shm are tmpfs, charged to the box's memory. Together they stay below it
 * (1/2 + 1/4 + 1/8), because a tmpfs that can outgrow the memory turns "disk full" into an OOM
 * kill.
 */
static int decide_areas(const struct policy_rules *rules, const struct exec_request *request,
                        struct box_limits *limits, struct error *err)
{
	const struct config *c = rules->config;
	const struct limit disk = {"resources.disk", request->disk_bytes, c->disk_bytes,
	                           POLICY_DISK_MIN,  c->disk_max_bytes,   "1Mi"};
	uint64_t half = limits->memory_bytes / 2;
	char most[32];

	if (decide_limit(&disk, &limits->workspace_bytes, err) < 0)
		return -1;
	if (request->disk_bytes != 0 && limits->workspace_bytes > half) {
		format_size(half, most, sizeof(most));
		return error_field(err, "resources.disk",
		                   "must be at most %s, half of resources.memory: files are kept "
		                   "in memory and count as such",
		                   most);
	}
	limits->workspace_bytes = whole_pages(min_of(limits->workspace_bytes, half));
	limits->tmp_bytes = whole_pages(min_of(TMP_BYTES, limits->memory_bytes / 4));
	limits->shm_bytes = whole_pages(min_of(SHM_BYTES, limits->memory_bytes / 8));
	limits->workspace_inodes = inodes_for(limits->workspace_bytes, WORKSPACE_INODES);
	limits->tmp_inodes = inodes_for(limits->tmp_bytes, TMP_INODES);
	return 0;
}

static int decide_limits(const struct policy_rules *rules, const struct exec_request *request,
                         struct policy_decision *d, struct error *err)
{
	const struct config *c = rules->config;
	uint64_t cores = rules->cores * 1000ULL;
	uint64_t cpu_max = c->cpu_max_millicores ? min_of(c->cpu_max_millicores, cores) : cores;
	struct box_limits *out = &d->spec.limits;
	uint64_t processes = 0;
	uint64_t cpu = 0;
	/* clang-format off */
	const struct {
		struct limit limit;
		uint64_t *ret_value;
	} rows[] = {
		{{"timeout", request->timeout_us, c->timeout_us, POLICY_TIMEOUT_MIN_US, c->timeout_max_us, "0.001"}, &d->timeout_us},
		{{"resources.memory", request->memory_bytes, c->memory_bytes, POLICY_MEMORY_MIN, c->memory_max_bytes, "16Mi"}, &out->memory_bytes},
		{{"resources.cpu", request->cpu_millicores, c->cpu_millicores, POLICY_CPU_MIN, cpu_max, "0.01"}, &cpu},
		{{"resources.max_processes", request->max_processes, c->processes, POLICY_PROCESSES_MIN, c->processes_max, "16"}, &processes},
		{{"resources.max_output", request->max_output_bytes, c->output_bytes, 1, c->output_max_bytes, "1"}, &d->output_bytes},
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (decide_limit(&rows[i].limit, rows[i].ret_value, err) < 0)
			return -1;
	/* Both fit: the table of settings bounds the maxima. */
	out->cpu_millicores = (uint32_t)cpu;
	out->pids = (uint32_t)processes;
	out->memory_bytes = whole_pages(out->memory_bytes);
	out->nofile = nofile_for(out->pids);
	d->spec.exec_tmp = false; /* programs that are made are made in the workspace */
	return decide_areas(rules, request, out, err);
}

int policy_check_name(const char *name)
{
	size_t parts = 0;

	if (strlen(name) > POLICY_NAME_BYTES)
		return -EINVAL;
	for (const char *part = name;;) {
		size_t len = strcspn(part, "/");

		if (len == 0 || len > POLICY_NAME_PART || ++parts > POLICY_NAME_PARTS)
			return -EINVAL;
		if (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.')))
			return -EINVAL;
		if (!part[len])
			return 0;
		part += len + 1;
	}
}

/* As strcmp, but '/' comes before all else: what is in a folder follows its name at once. */
static int compare_names(const void *a, const void *b)
{
	const unsigned char *x = *(const unsigned char *const *)a;
	const unsigned char *y = *(const unsigned char *const *)b;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : *x * 2) - (*y == '/' ? 1 : *y * 2);
}

/* @folder is @name, or a folder above it. */
static bool is_above(const char *folder, const char *name)
{
	size_t len = strlen(folder);

	return strncmp(folder, name, len) == 0 && (!name[len] || name[len] == '/');
}

/* Sorted, names that collide are neighbours: long names cost no more than their length. */
static int check_collisions(const struct exec_request *request, struct error *err)
{
	const char *names[POLICY_FILES_MAX] = {NULL};
	char quoted[QUOTE_LEN];

	for (size_t i = 0; i < request->files_count; i++)
		names[i] = request->files[i].name;
	qsort(names, request->files_count, sizeof(names[0]), compare_names);
	for (size_t i = 1; i < request->files_count; i++)
		if (is_above(names[i - 1], names[i]))
			return error_field(err, "files", "'%s' collides with another file",
			                   quote(names[i], quoted));
	return 0;
}

static int check_files(const struct exec_request *request, uint64_t room, struct error *err)
{
	char quoted[QUOTE_LEN];
	uint64_t total = 0;

	if (request->files_count > POLICY_FILES_MAX)
		return error_field(err, "files", "%zu files, at most %d are taken",
		                   request->files_count, POLICY_FILES_MAX);
	for (size_t i = 0; i < request->files_count; i++) {
		if (policy_check_name(request->files[i].name) < 0)
			return error_field(err, "files",
			                   "'%s' is not a name of a file: relative, at most %d "
			                   "parts of 1 to %d bytes, without '.' and '..'",
			                   quote(request->files[i].name, quoted), POLICY_NAME_PARTS,
			                   POLICY_NAME_PART);
		total += request->files[i].len;
	}
	if (total > room)
		return error_field(err, "files", "%llu bytes, but resources.disk is %llu",
		                   (unsigned long long)total, (unsigned long long)room);
	return check_collisions(request, err);
}

static int check_args(char *const *args, struct error *err)
{
	size_t count = 0;
	size_t bytes = 0;

	for (; args && args[count]; count++)
		bytes += strlen(args[count]) + 1;
	if (count > POLICY_ARGS_MAX || bytes > POLICY_ARGS_BYTES)
		return error_field(err, "args", "at most %d arguments and %d bytes are taken",
		                   POLICY_ARGS_MAX, POLICY_ARGS_BYTES);
	return 0;
}

static char *expand(const struct runner *r, const char *word, const char *source)
{
	if (str_equal(word, "{source}"))
		return xasprintf("%s/%s", SOURCE_PATH, source);
	if (str_has_prefix(word, "{runner}"))
		return xasprintf("%s/%s%s", RUNNERS_PATH, r->name, word + strlen("{runner}"));
	return xstrdup(word);
}

char **policy_argv(const struct runner *r, char *const *command, const char *source,
                   char *const *args)
{
	size_t words = str_list_count(command);
	size_t given = args ? str_list_count(args) : 0;
	char **argv = xcalloc(words + given + 1, sizeof(*argv));

	for (size_t i = 0; i < words; i++)
		argv[i] = expand(r, command[i], source);
	for (size_t i = 0; i < given; i++)
		argv[words + i] = xstrdup(args[i]);
	return argv;
}

/* Fail closed: without a layer the operator demands nothing runs, and the answer says which. */
static int decide_layers(const struct policy_rules *rules, struct policy_decision *d,
                         struct error *err)
{
	uint32_t missing;

	if (!rules->config->strict)
		return 0;
	d->spec.required_layers = rules->caps->required_layers;
	missing = d->spec.required_layers & ~rules->caps->layers;
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (missing & LAYER_BIT(i))
			return error_set(
				err, ERR_UNAVAILABLE, 0,
				"isolation layer '%s' is required and missing on this host",
				layer_name((enum wire_layer)i));
	return 0;
}

static void decision_cleanup(struct policy_decision *d)
{
	policy_decision_done(d);
}

int policy_decide(const struct policy_rules *rules, const struct exec_request *request,
                  struct policy_decision *ret_decision, struct error *err)
{
	attr_cleanup(decision_cleanup) struct policy_decision d = {0};

	if (decide_runner(rules, request, &d, err) < 0 ||
	    check_code(rules->config, request, err) < 0 ||
	    decide_limits(rules, request, &d, err) < 0 ||
	    check_files(request, d.spec.limits.workspace_bytes, err) < 0 ||
	    check_args(request->args, err) < 0 || policy_env_check(request->env, err) < 0 ||
	    decide_layers(rules, &d, err) < 0)
		return -1;
	d.argv = policy_argv(d.runner, d.runner->command, d.runner->source, request->args);
	d.env = policy_env_make(d.runner->env, request->env);
	*ret_decision = d;
	d = (struct policy_decision){0};
	return 0;
}

int policy_decide_box(const struct policy_rules *rules, const struct exec_request *request,
                      struct policy_decision *ret_decision, struct error *err)
{
	attr_cleanup(decision_cleanup) struct policy_decision d = {0};

	if (decide_runner(rules, request, &d, err) < 0 ||
	    decide_limits(rules, request, &d, err) < 0 || policy_env_check(request->env, err) < 0 ||
	    decide_layers(rules, &d, err) < 0)
		return -1;
	d.env = policy_env_make(d.runner->env, request->env);
	*ret_decision = d;
	d = (struct policy_decision){0};
	return 0;
}
