/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "core/install/internal.h"
#include "core/language/env.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/observe/audit.h"
#include "core/observe/metrics.h"
#include "core/run/remedy.h"
#include "core/run/run_internal.h"
#include "core/template/images.h"
#include "core/template/imports.h"
#include "core/template/layers.h"
#include "core/tenant/tenant.h"
#include "io/loop.h"
#include "io/timer.h"

/*
 * Theory of operation. The box gets one program, the installer. It prints progress on stderr, and
 * on stdout the resolved lock, or on failure one line about the package. What it leaves in the
 * directory "layer" of the workspace goes as tar to the importer, which unpacks it as it does
 * images. The next bytes are granted when the importer has taken the last. Then the layer enters
 * the cache.
 *
 * Everything that comes out of the box is hostile: it is bounded, shown as text, and stored.
 *
 * One timer bounds everything from the scheduler's turn on. Whatever ends it first wins.
 */

#define EXEC_ID        1
#define LAYER_DIR      "layer"
#define LOCK_FILE      "lock.in"
#define RUN_FILE       "run.in"
#define PACKING_PIDS   512
#define PACKING_INODES 500000
#define PACKING_NOFILE 4096
#define LIBRARY_CPU    1000
#define SMALL_BYTES    (64 * MIB)
/* The proxy's report, as of runs: it comes in less than the first. */
#define REPORT_WAIT_US  2000
#define REPORT_PAUSE_US 2000
#define REPORT_TIME_US  USEC_PER_SEC
#define DENIALS_BATCH   8
/* As much of a list as a message holds. */
#define RULES_LISTED_LEN 128

static void on_turn(void *ctx);

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void shape_box(struct packing *b, const char *rule)
{
	const struct config *c = b->owner->config.config;
	struct box_spec *spec = &b->decision.spec;

	spec->limits.memory_bytes = least(c->packages_memory_bytes, c->memory_max_bytes);
	spec->limits.workspace_bytes =
		least(least(c->packages_disk_bytes, c->disk_max_bytes), spec->limits.memory_bytes);
	spec->limits.tmp_bytes = spec->limits.shm_bytes = SMALL_BYTES;
	spec->limits.workspace_inodes = PACKING_INODES;
	spec->limits.tmp_inodes = PACKING_INODES / 10;
	spec->limits.pids = (uint32_t)least(PACKING_PIDS, c->processes_max);
	spec->limits.nofile = PACKING_NOFILE;
	spec->limits.cpu_millicores =
		c->cpu_max_millicores ? (uint32_t)least(2000, c->cpu_max_millicores)
				      : 1000 * (b->owner->config.runs->rules.cores > 1 ? 2 : 1);
	/* Nobody waits for a library: the programs that compile meanwhile go first. */
	if (b->is_library)
		spec->limits.cpu_millicores =
			(uint32_t)least(LIBRARY_CPU, spec->limits.cpu_millicores);
	box_rules_unref(spec->rules);
	spec->rules = NULL;
	spec->network = BOX_NETWORK_NONE;
	if (!b->is_library) {
		spec->network = BOX_NETWORK_ALLOWLIST;
		/* A mirror replaces the public registry. */
		spec->rules = policy_registry_rules(c, b->wanted.manager->set, rule,
		                                    registry_is_public(b->wanted.manager, rule));
	}
	/* Nor does a package call tools. */
	box_rules_unref(spec->tools);
	spec->tools = NULL;
	/* Only programs of tenants start warm. */
	spec->zygote[0] = spec->modules[0] = '\0';
	spec->keep = spec->spare = false;
	box_spec_make_id(spec->id);
	(void)!str_copy(spec->tenant, sizeof(spec->tenant), b->tenant);
	if (b->request_id) /* a longer one is not our id */
		(void)!str_copy(spec->request_id, BOX_REQUEST_LEN, b->request_id);
}

int packing_start(struct packing *b, struct error *err)
{
	struct installs *all = b->owner;
	const char *url = install_registry(all, b->wanted.manager);
	struct scheduler *scheduler = run_service_scheduler(all->config.runs);
	char rule[600] = "";
	int waits;

	if (!b->is_library && registry_rule(url, rule, sizeof(rule)) < 0)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "setting packages.%s_url: not an http(s) URL without a password",
		                 b->wanted.manager->name);
	shape_box(b, rule);
	if (!b->is_library &&
	    !(all->config.driver->caps.networks & BOX_NETWORK_BIT(BOX_NETWORK_ALLOWLIST)))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "packages need a network for boxes, which is not available: "
		                 "millibox-egress is not running");
	if (tenant_check_memory(b->account, b->decision.spec.limits.memory_bytes, err) < 0)
		return -1;
	b->entry = (struct scheduler_entry){
		.work = SCHEDULER_FRESH,
		.memory_bytes = b->decision.spec.limits.memory_bytes,
		.queue = b->account ? &b->account->queue : NULL,
		.on_turn = on_turn,
		.ctx = b,
	};
	b->state = PACKING_WAITING;
	all->running++;
	waits = scheduler_enter(scheduler, &b->entry, clock_us(), err);
	if (waits < 0) {
		all->running--;
		b->state = PACKING_QUEUED;
		return -1;
	}
	if (waits == 0)
		loop_defer(all->config.loop, on_turn, b); /* events come from the loop */
	return 0;
}

void packing_free(struct packing *b)
{
	struct install *install;

	LIST_FOREACH (install, &b->waiters, struct install, node) {
		list_remove(&install->node);
		free(install);
	}
	loop_cancel(b->owner->config.loop, on_turn, b);
	list_remove(&b->node);
	if (b->import)
		import_cancel(TAKE_PTR(b->import));
	timer_free(b->timer);
	timer_free(b->report_timer);
	wanted_done(&b->wanted);
	policy_decision_done(&b->decision);
	tenant_release(b->account);
	image_unref(b->image);
	image_unref(b->library);
	buf_done(&b->rest);
	buf_done(&b->log);
	buf_done(&b->lock);
	free(b->request_id);
	free(b->key_id);
	free(b);
}

static const char *const result_words[] = {"done", "failed", "cancelled"};
enum result {
	RESULT_DONE,
	RESULT_FAILED,
	RESULT_CANCELLED
};

/* Release everything but the box, whose end frees the rest. @b may be gone afterwards. */
static void end_packing(struct packing *b, enum result result, const char *code)
{
	struct installs *all = b->owner;
	struct scheduler *scheduler = run_service_scheduler(all->config.runs);
	const char *manager = b->wanted.manager->name;
	bool ran = b->state != PACKING_QUEUED;

	metrics_count_for(all->config.metrics, METRIC_PACKAGE_BUILDS,
	                  METRIC_LABELS(manager, result_words[result]), 1);
	metrics_observe_for(all->config.metrics, METRIC_PACKAGE_DURATION, METRIC_LABELS(manager),
	                    (double)(clock_us() - b->started_us) / 1e6);
	audit_write(all->config.audit, &(struct audit_event){.action = "packages.install",
	                                                     .tenant = b->tenant,
	                                                     .key_id = b->key_id,
	                                                     .object = b->wanted.key,
	                                                     .request_id = b->request_id,
	                                                     .result = code});
	b->state = PACKING_ENDED;
	all->running -= ran ? 1 : 0;
	loop_cancel(all->config.loop, on_turn, b);
	if (b->timer)
		timer_stop(b->timer);
	if (b->report_timer)
		timer_stop(b->report_timer);
	if (b->file)
		box_file_cancel(TAKE_PTR(b->file));
	if (b->import)
		import_cancel(TAKE_PTR(b->import));
	if (b->box) {
		box_destroy(b->box);
		scheduler_leave(scheduler, &b->entry, clock_us());
	} else {
		scheduler_out(scheduler, &b->entry, clock_us());
		packing_free(b);
	}
	install_next(all);
}

/* The last output, as text. Return: owned. */
static char *take_log(const struct packing *b)
{
	size_t len = b->log.len;
	char *text = utf8_sanitize(len ? b->log.data : "", len, &len);

	return text;
}

void packing_fail(struct packing *b, const struct error *err)
{
	cleanup_free char *text = take_log(b);
	const struct error copy = *err;
	struct install *install;

	log_debug("install of %s packages for %s failed: %s", b->wanted.manager->name, b->tenant,
	          err->msg);
	if (b->is_library)
		library_failed(b, err);
	while ((install = LIST_FIRST(&b->waiters, struct install, node))) {
		const struct install_events events =
			install->events; // NOLINT: it has left the list

		list_remove(&install->node);
		free(install);
		events.on_failed(events.ctx, &copy, text);
	}
	end_packing(b, RESULT_FAILED, error_text(copy.code));
}

void packing_drop(struct packing *b)
{
	if (b->state != PACKING_ENDED)
		end_packing(b, RESULT_CANCELLED, "cancelled");
}

static void fail_with(struct packing *b, enum error_code code, const char *what)
{
	struct error err = {0};

	(void)error_set(&err, code, 0, "%s: %s", b->wanted.manager->name, what);
	packing_fail(b, &err);
}

static void on_late(void *ctx)
{
	struct packing *b = ctx;
	char what[80];

	(void)snprintf(what, sizeof(what), "not installed within %llu seconds",
	               (unsigned long long)(b->timeout_us / USEC_PER_SEC));
	fail_with(b, ERR_INSTALL_FAILED, what);
}

/* The tree, on its way to the importer. */

static size_t write_rest(struct packing *b)
{
	if (b->sink.open)
		return b->sink.write(b->sink.ctx, b->rest.data, b->rest.len);
	return import_write(b->import, b->rest.data, b->rest.len);
}

void packing_push(struct packing *b)
{
	size_t taken = b->rest.len && b->state == PACKING_SENDING ? write_rest(b) : 0;

	/* A failure was reported, and freed the import. */
	if (b->state != PACKING_SENDING || (!b->import && !b->sink.open))
		return;
	buf_consume(&b->rest, taken);
	if (b->rest.len > 0)
		return;
	if (b->file && b->granted > 0) {
		size_t granted = b->granted;

		b->granted = 0;
		box_file_grant(b->file, granted);
	}
	if (!b->sent)
		return;
	b->sent = false;
	if (b->sink.open)
		b->sink.end(b->sink.ctx);
	else
		import_end(b->import);
}

void packing_sunk(struct packing *b, const struct error *err)
{
	if (b->state != PACKING_SENDING)
		return;
	if (err) {
		packing_fail(b, err);
		return;
	}
	install_done(b, NULL);
	end_packing(b, RESULT_DONE, "ok");
}

static void on_import_room(void *ctx)
{
	packing_push(ctx);
}

static void on_tree(void *ctx, struct image *image, const char *config attr_unused)
{
	struct packing *b = ctx;
	cleanup_free char *lock = xmemdup0(b->lock.len ? b->lock.data : "", b->lock.len);
	const struct layer_record record = {
		.tenant = b->tenant,
		.key = b->wanted.key,
		.manager = b->wanted.manager,
		.packages = b->wanted.packages,
		.lock = lock,
		.image = image,
	};
	struct error err = {0};
	struct layer *layer = NULL;

	b->import = NULL;
	if (install_check_size(image, b->max_bytes, &err) == 0)
		layer = layers_add(b->owner->config.layers, &record, &err);
	image_unref(image);
	if (!layer) {
		packing_fail(b, &err);
		return;
	}
	install_done(b, layer);
	end_packing(b, RESULT_DONE, "ok");
}

static void on_import_failed(void *ctx, const struct error *err)
{
	struct packing *b = ctx;

	b->import = NULL;
	packing_fail(b, err);
}

/* Never called: a tree has no template. */
static void on_template(void *ctx attr_unused, struct template *t attr_unused)
{
}

static void on_entry(void *ctx attr_unused, const struct box_file_entry *entry attr_unused)
{
}

static void on_file_room(void *ctx attr_unused)
{
}

static void on_file_data(void *ctx, const char *data, size_t len)
{
	struct packing *b = ctx;

	b->granted += len;
	if (buf_add(&b->rest, data, len) < 0) {
		fail_with(b, ERR_INSTALL_FAILED, "the box sent more than was granted");
		return;
	}
	packing_push(b);
}

static void on_file_done(void *ctx, const struct box_file_summary *summary)
{
	struct packing *b = ctx;

	b->file = NULL;
	if (summary->truncated) {
		fail_with(b, ERR_TOO_LARGE, "the packages have too many files");
		return;
	}
	b->sent = true;
	packing_push(b);
}

static void on_file_failed(void *ctx, const struct error *err)
{
	struct packing *b = ctx;
	struct error copy = *err;

	b->file = NULL;
	(void)error_wrap(&copy, "%s: the installed packages", b->wanted.manager->name);
	packing_fail(b, &copy);
}

static int open_import(struct packing *b, struct error *err)
{
	const struct import_request import = {.tree = true,
	                                      .tenant = b->tenant,
	                                      .id = b->wanted.key,
	                                      .length = IMPORT_LENGTH_UNKNOWN};
	const struct import_events events = {
		.ctx = b,
		.on_room = on_import_room,
		.on_done = on_template,
		.on_failed = on_import_failed,
		.on_tree = on_tree,
	};

	return imports_begin(b->owner->config.imports, &import, &events, &b->import, err);
}

static int open_sink(struct packing *b, struct error *err)
{
	cleanup_free char *lock = xmemdup0(b->lock.data, b->lock.len);

	return b->sink.open(b->sink.ctx, lock, b->max_bytes, err);
}

static void send_tree(struct packing *b)
{
	const struct box_file_events events = {
		.ctx = b,
		.on_entry = on_entry,
		.on_data = on_file_data,
		.on_room = on_file_room,
		.on_done = on_file_done,
		.on_failed = on_file_failed,
	};
	const struct box_file_request file = {.op = BOX_FILE_TAR,
	                                      .path = b->sink.open ? b->wanted.manager->tree
	                                                           : LAYER_DIR,
	                                      .length = b->max_bytes,
	                                      .limit = PACKING_INODES};
	struct error err = {0};

	b->state = PACKING_SENDING;
	if ((b->sink.open ? open_sink(b, &err) : open_import(b, &err)) < 0 ||
	    box_file_open(b->box, &file, &events, &b->file, &err) < 0)
		packing_fail(b, &err);
}

/* The last host whose address is not public. Return: whether some rule opens it. */
static bool find_private(struct packing *b, struct box_denial *ret_denial,
                         char ret_rule[REMEDY_RULE_LEN])
{
	struct box_denial list[DENIALS_BATCH];
	bool found = false;
	size_t count;

	do {
		count = box_denials(b->box, list, ARRAY_SIZE(list));
		for (size_t i = 0; i < count; i++)
			if (remedy_address_rule(&list[i], ret_rule)) {
				*ret_denial = list[i];
				found = true;
			}
	} while (count == ARRAY_SIZE(list));
	return found;
}

/* What the box may reach, and @more. Return: whether all of it fits. */
static bool list_rules(const struct box_rules *rules, const char *more, char ret[RULES_LISTED_LEN])
{
	size_t len = 0;

	for (size_t i = 0; i <= rules->count; i++) {
		const char *text = i < rules->count ? rules->texts[i] : more;
		int n = snprintf(ret + len, RULES_LISTED_LEN - len, "%s\"%s\"", i > 0 ? ", " : "",
		                 text);

		if (n < 0 || (size_t)n >= RULES_LISTED_LEN - len)
			return false;
		len += (size_t)n;
	}
	return true;
}

/* A setting of hosts replaces the built-in ones: it names them and the registry, too. */
static void fail_private(struct packing *b, const struct box_denial *denial, const char *rule)
{
	char what[2 * BOX_HOST_LEN], all[RULES_LISTED_LEN];
	bool fits = list_rules(b->decision.spec.rules, rule, all);

	(void)snprintf(
		what, sizeof(what),
		"%.60s has an address that is not public; the operator %s egress.%s%s%.127s%s",
		denial->host, fits ? "opens it:" : "adds to", b->wanted.manager->set,
		fits ? ": [" : ": ", fits ? all : rule, fits ? "]" : "");
	fail_with(b, ERR_INSTALL_FAILED, what);
}

/* The installer's own words: the first line of its stdout. */
static void fail_install(struct packing *b)
{
	size_t len = b->lock.len < INSTALL_TEXT_MAX ? b->lock.len : INSTALL_TEXT_MAX;
	cleanup_free char *said = utf8_sanitize(len ? b->lock.data : "", len, &len);
	const struct exec_facts *facts = &b->facts;
	struct box_counters counters = {0};
	struct box_denial denial;
	char what[64], rule[REMEDY_RULE_LEN];

	said[strcspn(said, "\n")] = '\0';
	box_counters(b->box, COUNTERS_FOR_RESULT, &counters);
	if (facts->disk_full)
		fail_with(b, ERR_INSTALL_FAILED, "the disk of the box is full: packages.disk");
	else if (counters.oom_kills != COUNTER_UNKNOWN && counters.oom_kills > 0)
		fail_with(b, ERR_INSTALL_FAILED, "out of memory: packages.memory");
	else if (find_private(b, &denial, rule))
		fail_private(b, &denial, rule);
	else if (*said)
		fail_with(b, ERR_INSTALL_FAILED, said);
	else {
		(void)snprintf(what, sizeof(what), "the installer ended with %s %d",
		               facts->signalled ? "signal" : "exit code", facts->status);
		fail_with(b, ERR_INSTALL_FAILED, what);
	}
}

static void on_report_timer(void *ctx)
{
	struct packing *b = ctx;

	if (box_settle_network(b->box, 0) || clock_us() >= b->report_by_us)
		fail_install(b);
	else
		timer_start(b->report_timer, REPORT_PAUSE_US);
}

/* What the proxy refused may be why. */
static void await_report(struct packing *b, const struct exec_facts *facts)
{
	b->facts = *facts;
	box_ask_network(b->box);
	if (box_settle_network(b->box, REPORT_WAIT_US)) {
		fail_install(b);
		return;
	}
	b->report_by_us = clock_us() + REPORT_TIME_US;
	b->report_timer = timer_new(b->owner->config.loop, on_report_timer, b);
	timer_start(b->report_timer, REPORT_PAUSE_US);
}

/* Events of the box. */

static void on_ready(void *ctx)
{
	struct packing *b = ctx;

	scheduler_built(run_service_scheduler(b->owner->config.runs), &b->entry, clock_us());
}

static void on_started(void *ctx attr_unused, uint32_t exec_id attr_unused)
{
}

static void keep_log(struct packing *b, const char *data, size_t len)
{
	struct buf *log = &b->log;

	if (len > log->max) {
		data += len - log->max;
		len = log->max;
	}
	if (log->len + len > log->max)
		buf_consume(log, log->len + len - log->max);
	(void)!buf_add(log, data, len);
}

static void on_output(void *ctx, uint32_t exec_id attr_unused, enum output_stream stream,
                      const char *data, size_t len)
{
	struct packing *b = ctx;
	struct install *install;

	if (b->state != PACKING_RUNNING)
		return;
	if (stream == OUTPUT_STDOUT) {
		(void)buf_add_some(&b->lock, data, len);
		return;
	}
	keep_log(b, data, len);
	LIST_FOREACH (install, &b->waiters, struct install, node)
		if (install->events.on_output)
			install->events.on_output(install->events.ctx, data, len);
}

static void on_report(void *ctx attr_unused, uint32_t exec_id attr_unused,
                      const char *data attr_unused, size_t len attr_unused)
{
}

static void on_denial(void *ctx attr_unused, uint32_t exec_id attr_unused,
                      const char *what attr_unused, uint64_t count attr_unused)
{
}

static void on_done(void *ctx, uint32_t exec_id attr_unused, const struct exec_facts *facts)
{
	struct packing *b = ctx;

	if (b->state != PACKING_RUNNING)
		return;
	if (facts->signalled || facts->status != 0)
		await_report(b, facts);
	else if (b->lock.len == 0 || !utf8_is_valid(b->lock.data, b->lock.len) ||
	         memchr(b->lock.data, 0, b->lock.len))
		fail_with(b, ERR_INSTALL_FAILED, "the installer gave no lock");
	else
		send_tree(b);
}

static void on_exec_failed(void *ctx, uint32_t exec_id attr_unused, const struct error *err)
{
	struct packing *b = ctx;

	if (b->state != PACKING_ENDED)
		packing_fail(b, err);
}

static void on_lost(void *ctx, const struct error *err)
{
	struct packing *b = ctx;

	if (b->state != PACKING_ENDED)
		packing_fail(b, err);
}

static void on_gone(void *ctx)
{
	struct packing *b = ctx;
	struct installs *all = b->owner;
	struct error err = {0};

	b->box = NULL;
	if (b->state != PACKING_ENDED) { /* cannot be: it was not destroyed */
		(void)error_set(&err, ERR_AGENT_LOST, 0, "the box is gone");
		packing_fail(b, &err);
		return;
	}
	tenant_drop_box(b->account);
	scheduler_out(run_service_scheduler(all->config.runs), &b->entry, clock_us());
	packing_free(b);
}

static char **make_argv(const struct packing *b)
{
	const struct manager *m = b->wanted.manager;
	size_t words = 0, count = str_list_count(b->wanted.packages);
	char **argv;

	while (words < ARRAY_SIZE(m->command) && m->command[words])
		words++;
	argv = xcalloc(words + count + 1, sizeof(*argv));
	for (size_t i = 0; i < words; i++) {
		const char *place =
			b->decision.argv && i == 0 ? b->decision.argv[0] : m->command[i];

		/* An image may have the program elsewhere. */
		argv[i] = xstrdup(
			i == 0 && b->decision.runner &&
					str_equal(m->command[0], b->decision.runner->program)
				? place
				: m->command[i]);
	}
	for (size_t i = 0; i < count; i++)
		argv[words + i] = xstrdup(b->wanted.packages[i]);
	return argv;
}

static char **make_env(const struct packing *b)
{
	cleanup_free char *registry =
		xasprintf("MILLIBOX_REGISTRY=%s", install_registry(b->owner, b->wanted.manager));
	char *own[] = {
		registry,
		(char *)(uintptr_t)(b->wanted.lock ? "MILLIBOX_LOCK=" LOCK_FILE : "MILLIBOX_LOCK="),
		(char *)(uintptr_t)(b->wanted.run ? "MILLIBOX_RUN=" RUN_FILE : "MILLIBOX_RUN="),
		/* What the host has does not satisfy a package. */
		(char *)(uintptr_t)(b->hides_host ? b->wanted.manager->alone : NULL), NULL};

	return env_make(NULL, own, ENV_PROXY, NULL);
}

static int run_installer(struct packing *b, struct error *err)
{
	cleanup_str_list char **argv = make_argv(b);
	cleanup_str_list char **env = make_env(b);
	const char *const texts[] = {b->wanted.lock, b->wanted.run};
	static const char *const names[] = {LOCK_FILE, RUN_FILE};
	struct exec_file files[ARRAY_SIZE(texts)];
	size_t count = 0;
	struct exec_plan plan = {
		.id = EXEC_ID,
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.cwd = "",
		.files = files,
		.stdout_max = INSTALL_LOCK_MAX,
		.stderr_max = 16 * MIB,
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i])
			files[count++] = (struct exec_file){.path = names[i],
			                                    .data = texts[i],
			                                    .len = strlen(texts[i]),
			                                    .mode = 0644};
	plan.files_count = count;
	return box_exec(b->box, &plan, err);
}

static void on_turn(void *ctx)
{
	struct packing *b = ctx;
	struct installs *all = b->owner;
	const struct box_events events = {
		.ctx = b,
		.on_ready = on_ready,
		.on_started = on_started,
		.on_output = on_output,
		.on_report = on_report,
		.on_denial = on_denial,
		.on_done = on_done,
		.on_exec_failed = on_exec_failed,
		.on_lost = on_lost,
		.on_gone = on_gone,
	};
	struct error err = {0};

	b->timer = timer_new(all->config.loop, on_late, b);
	timer_start(b->timer, b->timeout_us);
	b->state = PACKING_RUNNING;
	if (box_create(all->config.driver, &b->decision.spec, &events, &b->box, &err) < 0) {
		packing_fail(b, &err);
		return;
	}
	tenant_add_box(b->account);
	if (run_installer(b, &err) < 0)
		packing_fail(b, &err);
}
