/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/language_check.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "core/language/env.h"
#include "core/language/runners.h"
#include "core/pool/pool.h"
#include "core/request/run_request.h"
#include "core/run/run_internal.h"
#include "core/template/images.h"
#include "core/template/template.h"
#include "core/template/toolchains.h"
#include "io/loop.h"
#include "io/timer.h"

/*
 * Theory of operation. A check is one language of one root, in one box, which runs the steps one
 * after another: the compiler, the program, the question for the version. The first that fails ends
 * it with a verdict against the language. What says nothing about the language (the box was lost,
 * the time was over, a signal ended the program) gives no verdict: the files decide, as before.
 *
 * Checks queue; the pump starts them from the loop, so nothing calls back inside a call. A wait
 * ends when no check of its root is left.
 *
 * What a box prints is hostile: of an image, its author chose it. It is bounded and shown as text
 * of one line.
 */

#define HOST_CHECKS  2
#define CHECK_MAX_US (30 * USEC_PER_SEC)
#define QUEUE_MAX    256 /* of roots of templates; a longer one takes no more: the files decide */
#define OUTPUT_BYTES 8192
#define REASON_BYTES 200

enum check_step {
	STEP_NONE,
	STEP_COMPILE,
	STEP_RUN,
	STEP_VERSION,
	STEP_COUNT
};

struct check {
	struct list node; /* language_checks.checks */
	struct language_checks *all;
	struct template *template;   /* a reference; NULL: the host's root */
	struct template root;        /* template_root_alone of it */
	char engine[BOX_ENGINE_LEN]; /* "": the default */
	const struct runner *runner;
	uint64_t due_us;
	bool started;
	struct toolchain_key key;
	enum check_step step; /* its number is the execution's id */
	struct scheduler_entry entry;
	struct policy_decision decision;
	struct box *box;       /* NULL: none yet */
	struct image *library; /* a reference; NULL: none */
	struct timer *timer;   /* owned; NULL: not started */
	struct buf out;
	struct buf err;
	enum toolchain_state state;
	char *reason; /* owned */
	char version[LANGUAGE_VERSION_LEN];
};

struct language_wait {
	struct list node;
	struct language_checks *all;
	struct template *template; /* a reference */
	char engine[BOX_ENGINE_LEN];
	struct timer *timer;
	language_wait_fn *fn;
	void *ctx;
};

struct language_checks {
	struct run_service *service;
	struct list checks;
	size_t count;
	size_t running[2];                /* of other roots, of the host's */
	char latest[TENANT_NAME_MAX + 1]; /* whose template had its turn last */
	struct list waits;
	bool due; /* the pump */
	bool stopped;
	language_wait_fn *on_change; /* NULL: none */
	void *change_ctx;
	uint64_t host; /* while on_change: a bit for each language that works there */
};
static_assert(RUNNERS_MAX <= 64, "every language has its bit");

static void pump(void *ctx);

bool language_version_find(const char *text, size_t len, char ret_version[LANGUAGE_VERSION_LEN])
{
	for (size_t i = 0; i < len; i++) {
		size_t n = 0, dots = 0;

		if (!isdigit((unsigned char)text[i]) ||
		    (i > 0 && isalnum((unsigned char)text[i - 1]) && text[i - 1] != 'v' &&
		     text[i - 1] != 'o'))
			continue;
		for (; i + n < len && (isalnum((unsigned char)text[i + n]) || text[i + n] == '.');
		     n++)
			dots += text[i + n] == '.';
		while (n > 0 && text[i + n - 1] == '.')
			n--;
		if (dots > 0 && n < LANGUAGE_VERSION_LEN) {
			memcpy(ret_version, text + i, n);
			ret_version[n] = '\0';
			return true;
		}
		i += n;
	}
	return false;
}

static bool is_on_host(const struct template *t)
{
	return !template_has_own_root(t);
}

static bool is_same_root(const struct template *a, const struct template *b)
{
	if (is_on_host(a) || is_on_host(b))
		return is_on_host(a) && is_on_host(b);
	return str_equal(a->root, b->root);
}

static struct toolchains *toolchains_of(const struct language_checks *all)
{
	return all->service->config.toolchains;
}

static void schedule_pump(struct language_checks *all)
{
	if (all->due)
		return;
	all->due = true;
	loop_defer(all->service->config.loop, pump, all);
}

static uint64_t host_set(const struct language_checks *all)
{
	const struct runner *r;
	uint64_t set = 0;

	for (size_t i = 0; (r = runners_at(all->service->rules.runners, i)); i++)
		if (toolchains_has(toolchains_of(all), NULL, r))
			set |= 1ULL << i;
	return set;
}

void language_checks_watch(struct language_checks *all, language_wait_fn *fn, void *ctx)
{
	all->on_change = fn;
	all->change_ctx = ctx;
	all->host = fn ? host_set(all) : 0;
}

/* Files may have changed, too. */
static void note_change(struct language_checks *all)
{
	uint64_t before = all->host;

	if (!all->on_change)
		return;
	all->host = host_set(all);
	if (all->host != before)
		all->on_change(all->change_ctx);
}

void language_wait_cancel(struct language_wait *wait)
{
	list_remove(&wait->node);
	template_unref(wait->template);
	timer_free(wait->timer);
	free(wait);
}

static void end_wait(struct language_wait *wait)
{
	language_wait_fn *fn = wait->fn;
	void *ctx = wait->ctx;

	language_wait_cancel(wait);
	fn(ctx);
}

static void on_wait_late(void *ctx)
{
	end_wait(ctx);
}

/* What a check sees of its template. NULL: the host's root. */
static const struct template *root_of(const struct check *c)
{
	return c->template ? &c->root : NULL;
}

/* Give back what it holds; its box ends by itself. */
static void check_free(struct check *c)
{
	struct language_checks *all = c->all;
	struct run_service *s = all->service;

	list_remove(&c->node);
	all->count--;
	if (c->started) {
		all->running[is_on_host(c->template)]--;
		scheduler_out(&s->scheduler, &c->entry, clock_us());
	}
	if (c->box)
		pools_end(s->pools, TAKE_PTR(c->box));
	policy_decision_done(&c->decision);
	template_unref(c->template);
	image_unref(c->library);
	timer_free(c->timer);
	buf_done(&c->out);
	buf_done(&c->err);
	free(c->reason);
	free(c);
}

/* The end of one may be the turn of the next, and its end. */
static void free_checks(struct language_checks *all)
{
	struct check *c;

	while ((c = LIST_FIRST(&all->checks, struct check, node)))
		check_free(c); // NOLINT: one that was freed has left the list
}

void language_checks_stop(struct language_checks *all)
{
	all->stopped = true;
	free_checks(all);
	schedule_pump(all);
}

void language_checks_free(struct language_checks *all)
{
	struct language_wait *wait;

	if (!all)
		return;
	LIST_FOREACH (wait, &all->waits, struct language_wait, node)
		language_wait_cancel(wait);
	free_checks(all);
	if (toolchains_of(all))
		toolchains_on_refusal(toolchains_of(all), NULL, NULL);
	loop_cancel(all->service->config.loop, pump, all);
	free(all);
}

static void end_check(struct check *c, enum toolchain_state state)
{
	struct language_checks *all = c->all;
	const struct toolchain_verdict verdict = {
		.key = c->key,
		.state = state,
		.reason = c->reason,
		.version = c->version[0] ? c->version : NULL,
	};
	bool on_host = is_on_host(c->template);

	toolchains_learn(toolchains_get(toolchains_of(all), c->engine), c->template, c->runner,
	                 &verdict);
	if (state == TOOLCHAIN_FAILS)
		log_info("language %s does not work %s%s%s: %s", c->runner->name,
		         on_host ? "on this host" : c->template->root,
		         c->engine[0] ? " with engine " : "", c->engine, c->reason);
	check_free(c);
	schedule_pump(all);
}

/* It says nothing about the language. */
static void give_up(struct check *c, const char *why)
{
	log_debug("check of language %s: %s", c->runner->name, why);
	end_check(c, TOOLCHAIN_UNKNOWN);
}

static void refute(struct check *c, const char *reason)
{
	c->reason = xstrdup(reason);
	end_check(c, TOOLCHAIN_FAILS);
}

/* The line that names an error, else the last one that is not indented. Return: its length. */
static size_t choose_line(const char *text, const char **ret_line)
{
	const char *best = "", *line = text;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		cleanup_free char *copy = xstrndup(line, len);

		if (strcasestr(copy, "error") || strcasestr(copy, "missing")) {
			best = line;
			break;
		}
		if (len > 0 && !isspace((unsigned char)*line))
			best = line;
	}
	*ret_line = best;
	return strcspn(best, "\n");
}

static void refute_by_output(struct check *c, int status)
{
	const struct buf *said = c->err.len > 0 ? &c->err : &c->out;
	size_t len = 0;
	cleanup_free char *text = utf8_sanitize(said->data ? said->data : "", said->len, &len);
	const char *line;

	len = choose_line(text, &line);
	if (len == 0) {
		cleanup_free char *reason =
			status == 0 ? xstrdup("it does not print what it should")
				    : xasprintf("exit code %d, without a message", status);

		refute(c, reason);
		return;
	}
	cleanup_free char *reason =
		xstrndup(line, len > REASON_BYTES ? utf8_cut(line, REASON_BYTES) : len);

	for (char *at = reason; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = ' ';
	refute(c, reason);
}

static bool is_due(const struct check *c, enum check_step step)
{
	const struct runner *r = c->runner;
	bool runs = r->hello && c->all->service->config.config->runners_check;

	return step == STEP_COMPILE ? runs && r->compile_command && !r->compile_if
	       : step == STEP_RUN   ? runs
	                            : r->version_command != NULL;
}

static int start_step(struct check *c, struct error *err)
{
	const struct runner *r = c->runner;
	bool compiles = c->step == STEP_COMPILE;
	struct policy_command command = {
		.runner = r,
		.template = root_of(c),
		.command = compiles ? r->compile_command : r->version_command,
		.source = r->source,
		.artifact = POLICY_ARTIFACT,
		.compile = compiles ? POLICY_COMPILE_KEEP : POLICY_COMPILE_NOT,
	};
	cleanup_str_list char **argv = c->step == STEP_RUN ? NULL : policy_argv(&command);
	cleanup_str_list char **own = template_runner_env(root_of(c), r);
	cleanup_str_list char **env =
		env_make(own, c->step == STEP_RUN ? NULL : r->compile_env, 0, NULL);
	const struct run_request none = {0};
	const struct exec_source source = {r->source, r->hello, r->hello ? strlen(r->hello) : 0};
	cleanup_free struct exec_file *files = run_request_files(&none, &source);
	bool needs_code = compiles || (c->step == STEP_RUN && !is_due(c, STEP_COMPILE));
	const struct exec_plan plan = {
		.id = c->step,
		.argv = (const char *const *)(argv ? argv : c->decision.argv),
		.env = (const char *const *)env,
		.cwd = "",
		.files = files,
		.files_count = needs_code,
		.stdout_max = OUTPUT_BYTES,
		.stderr_max = OUTPUT_BYTES,
		.report_max = c->step == STEP_RUN ? c->decision.report_bytes : 0,
	};

	buf_reset(&c->out);
	buf_reset(&c->err);
	return box_exec(c->box, &plan, err);
}

static void go_on(struct check *c)
{
	struct error err = {0};

	while (++c->step < STEP_COUNT && !is_due(c, c->step))
		;
	if (c->step == STEP_COUNT)
		end_check(c, is_due(c, STEP_RUN) ? TOOLCHAIN_WORKS : TOOLCHAIN_UNCHECKED);
	else if (start_step(c, &err) < 0)
		give_up(c, err.msg);
}

/* Its program has run: without a version it still works. */
static bool has_run(const struct check *c)
{
	return c->step == STEP_VERSION && is_due(c, STEP_RUN);
}

static void end_early(struct check *c, const char *why)
{
	if (has_run(c))
		end_check(c, TOOLCHAIN_WORKS);
	else
		give_up(c, why);
}

static void on_late(void *ctx)
{
	end_early(ctx, "no answer in time");
}

static void on_ready(void *ctx)
{
	struct check *c = ctx;

	scheduler_built(&c->all->service->scheduler, &c->entry, clock_us());
}

static void on_started(void *ctx attr_unused, uint32_t id attr_unused)
{
}

/* What exceeds the bound is not needed. */
static void on_output(void *ctx, uint32_t id attr_unused, enum output_stream stream,
                      const char *data, size_t len)
{
	struct check *c = ctx;

	(void)buf_add_some(stream == OUTPUT_STDOUT ? &c->out : &c->err, data, len);
}

static void on_report(void *ctx attr_unused, uint32_t id attr_unused, const char *data attr_unused,
                      size_t len attr_unused)
{
}

static void on_denial(void *ctx attr_unused, uint32_t id attr_unused, const char *what attr_unused,
                      uint64_t count attr_unused)
{
}

static bool says_hello(const struct check *c)
{
	size_t len = strlen(RUNNER_HELLO);

	return c->out.len >= len && memcmp(c->out.data, RUNNER_HELLO, len) == 0;
}

/* A toolchain that works may not know its version. */
static void take_version(struct check *c)
{
	const struct buf *said[] = {&c->out, &c->err};

	for (size_t i = 0; i < ARRAY_SIZE(said); i++)
		if (said[i]->data && language_version_find(said[i]->data, said[i]->len, c->version))
			return;
}

static void on_done(void *ctx, uint32_t id attr_unused, const struct exec_facts *facts)
{
	struct check *c = ctx;

	if (c->step == STEP_VERSION) {
		take_version(c);
		go_on(c);
	} else if (facts->signalled || facts->disk_full) {
		/* Perhaps the host is short of memory. */
		give_up(c, facts->signalled ? "a signal ended it" : "the disk of its box is full");
	} else if (facts->status != 0 || (c->step == STEP_RUN && !says_hello(c))) {
		refute_by_output(c, facts->status);
	} else {
		go_on(c);
	}
}

/* Whether the program of a command cannot be executed, and not the box. */
static bool is_about_program(int sys)
{
	return sys == ENOENT || sys == EACCES || sys == ENOEXEC || sys == ENOTDIR || sys == ELOOP;
}

static void on_exec_failed(void *ctx, uint32_t id attr_unused, const struct error *err)
{
	struct check *c = ctx;

	if (c->step == STEP_VERSION) {
		go_on(c);
	} else if (is_about_program(err->sys)) {
		cleanup_free char *reason = xasprintf("%s: %s", err->msg, strerror(err->sys));

		refute(c, reason);
	} else {
		give_up(c, err->msg);
	}
}

static void on_lost(void *ctx, const struct error *err)
{
	end_early(ctx, err->msg);
}

static void on_gone(void *ctx attr_unused)
{
}

static void on_turn(void *ctx)
{
	struct check *c = ctx;
	const struct box_events events = {
		.ctx = c,
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
	struct box_spec spec = c->decision.spec;
	struct error err = {0};

	/* As the box of a compiler, in which the program runs, too. */
	if (is_due(c, STEP_COMPILE)) {
		spec.limits = c->decision.compile_limits;
		c->library = run_service_library(c->all->service, c->template, c->runner, &spec);
	}
	spec.network = BOX_NETWORK_NONE;
	spec.rules = spec.tools = NULL;
	spec.zygote[0] = '\0';
	box_spec_make_id(spec.id);
	(void)!str_copy(spec.tenant, BOX_TENANT_LEN,
	                is_on_host(c->template) ? TENANT_DEFAULT : c->template->tenant);
	if (box_create(c->all->service->config.driver, &spec, &events, &c->box, &err) < 0) {
		give_up(c, err.msg);
		return;
	}
	timer_start(c->timer, CHECK_MAX_US);
	go_on(c);
}

/*
 * As an execution without a tenant's wishes: all tenants get the verdict, so neither the limits nor
 * the packages of the template that was asked about count. What was said against the language so
 * far must not keep it from being checked. But the programs of a tenant's root are the tenant's,
 * and its policies may ask for more isolation than the default engine has: such a root is checked
 * where isolation is best, or not at all.
 */
static int decide(struct check *c, struct error *err)
{
	struct policy_rules rules = c->all->service->rules;
	const struct policy_stack stack = {0};
	char *engine = c->engine[0] ? c->engine : NULL;
	const struct run_request request = {
		.language = c->runner->name,
		.code = (char *)(uintptr_t) " ",
		.code_len = 1,
		.engine = engine,
		.min_isolation = is_on_host(c->template) ? BOX_GRADE_NAMESPACE
	                                                 : driver_best_grade(rules.driver),
		.template = (struct template *)(uintptr_t)root_of(c)};

	rules.toolchains = NULL;
	return policy_decide(&rules, &stack, &request, &c->decision, err);
}

static void start_check(struct check *c)
{
	struct run_service *s = c->all->service;
	struct error err = {0};
	int waits;

	c->started = true;
	if (c->template) /* as long */
		(void)!str_copy(c->all->latest, sizeof(c->all->latest), c->template->tenant);
	toolchains_key(toolchains_of(c->all), c->template, c->runner, &c->key);
	c->all->running[is_on_host(c->template)]++;
	c->timer = timer_new(s->config.loop, on_late, c);
	if (decide(c, &err) < 0) {
		give_up(c, err.msg);
		return;
	}
	c->entry = (struct scheduler_entry){
		.work = SCHEDULER_FRESH,
		.memory_bytes = is_due(c, STEP_COMPILE) ? c->decision.compile_limits.memory_bytes
	                                                : c->decision.spec.limits.memory_bytes,
		.patient = true, /* their number is bounded here */
		.on_turn = on_turn,
		.ctx = c,
	};
	waits = scheduler_enter(&s->scheduler, &c->entry, clock_us(), &err);
	if (waits < 0)
		give_up(c, err.msg);
	else if (waits == 0)
		on_turn(c);
}

static bool has_place(const struct check *c)
{
	bool on_host = is_on_host(c->template);

	return c->all->running[on_host] < (on_host ? HOST_CHECKS : 1);
}

/* A tenant whose compilers hang has each second place of templates, at most. */
static struct check *next_check(const struct language_checks *all)
{
	struct check *c, *again = NULL;

	LIST_FOREACH (c, &all->checks, struct check, node) // NOLINT: a freed one is on no list
		if (c->started || !has_place(c))
			continue;
		else if (!c->template || !str_equal(c->template->tenant, all->latest))
			return c;
		else if (!again)
			again = c;
	return again;
}

/* The one of its root that has been due for the longest time; NULL: none is. */
static const struct check *find_pending(const struct language_checks *all, const char *engine,
                                        const struct template *t)
{
	struct check *c;

	LIST_FOREACH (c, &all->checks, struct check, node)
		if (is_same_root(c->template, t) && str_equal(c->engine, engine))
			return c;
	return NULL;
}

static struct language_wait *next_wait(const struct language_checks *all)
{
	struct language_wait *wait;

	LIST_FOREACH (wait, &all->waits, struct language_wait, node)
		if (!find_pending(all, wait->engine, wait->template))
			return wait;
	return NULL;
}

/* Who waited may cancel other waits, or ask again. */
static void pump(void *ctx)
{
	struct language_checks *all = ctx;
	struct language_wait *wait;
	struct check *c;

	all->due = false;
	while (!all->stopped && (c = next_check(all)))
		start_check(c);
	while ((wait = next_wait(all)))
		end_wait(wait); // NOLINT: one that was freed has left the list
	note_change(all);
}

static void add_check(struct language_checks *all, const char *engine, struct template *t,
                      const struct runner *r)
{
	struct check *c;

	LIST_FOREACH (c, &all->checks, struct check, node)
		if (c->runner == r && is_same_root(c->template, t) && str_equal(c->engine, engine))
			return;
	/* Those of the host's root are few, and everybody's. */
	if (all->count >= QUEUE_MAX && !is_on_host(t))
		return;
	c = NEW(struct check);
	c->all = all;
	/* On the host's root nothing of a template matters. */
	if (!is_on_host(t)) {
		c->template = template_ref(t);
		c->root = template_root_alone(t);
	}
	(void)!str_copy(c->engine, sizeof(c->engine), engine); /* a name of an engine */
	c->runner = r;
	c->due_us = clock_us();
	buf_init(&c->out, OUTPUT_BYTES);
	buf_init(&c->err, OUTPUT_BYTES);
	list_append(&all->checks, &c->node);
	all->count++;
	schedule_pump(all);
}

static bool can_check(const struct language_checks *all)
{
	return toolchains_of(all) && !all->stopped && !all->service->draining;
}

struct language_wait *language_checks_want(struct language_checks *all,
                                           const struct language_query *query, language_wait_fn *fn,
                                           void *ctx)
{
	const char *engine = query->engine ? query->engine : "";
	struct template *t = query->template;
	const struct check *first;
	struct language_wait *wait;
	const struct runner *r;
	uint64_t waited_us;

	if (!can_check(all) || query->within_us == 0)
		return NULL;
	for (size_t i = 0; (r = runners_at(all->service->rules.runners, i)); i++)
		if (toolchains_is_due(toolchains_find(toolchains_of(all), engine), t, r,
		                      query->again))
			add_check(all, engine, t, r);
	schedule_pump(all);
	first = find_pending(all, engine, t);
	waited_us = first ? clock_us() - first->due_us : 0;
	if (!first || waited_us >= query->within_us)
		return NULL;
	wait = NEW(struct language_wait);
	wait->all = all;
	wait->template = template_ref(t);
	(void)!str_copy(wait->engine, sizeof(wait->engine), engine);
	wait->fn = fn;
	wait->ctx = ctx;
	wait->timer = timer_new(all->service->config.loop, on_wait_late, wait);
	timer_start(wait->timer, query->within_us - waited_us);
	list_append(&all->waits, &wait->node);
	return wait;
}

/* The answer is given: the next request gets what is found out now. */
static void on_refusal(void *ctx, const char *engine, const struct template *t,
                       const struct runner *r)
{
	struct language_checks *all = ctx;

	if (can_check(all))
		add_check(all, engine, (struct template *)(uintptr_t)t, r);
}

struct language_checks *language_checks_new(struct run_service *s)
{
	struct language_checks *all = NEW(struct language_checks);

	all->service = s;
	list_init(&all->checks);
	list_init(&all->waits);
	if (toolchains_of(all))
		toolchains_on_refusal(toolchains_of(all), on_refusal, all);
	return all;
}
