/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/versions.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/env.h"
#include "core/language/runners.h"
#include "core/pool/pool.h"
#include "core/run/run_internal.h"
#include "io/loop.h"

/*
 * Theory of operation. One box for all questions; it is destroyed after the last answer, after
 * TIME_MAX_US, or with the service. A toolchain that does not answer has no version; the others
 * still have theirs. Everyone who asked waits for the same box.
 */

#define OUTPUT_BYTES 4096
#define TIME_MAX_US  (20 * USEC_PER_SEC)
#define MEMORY       (512ULL << 20)

struct versions_wait {
	struct list node;
	versions_fn *fn;
	void *ctx;
};

struct version {
	const struct runner *runner;
	char text[VERSION_LEN]; /* "": not known */
};

struct versions {
	struct run_service *service;
	struct version *list; /* owned; NULL: never asked */
	size_t count, next;
	struct list waits;
	struct box *box; /* NULL: none */
	struct buf output;
	struct timer *timer;
	bool known;
};

bool version_find(const char *text, size_t len, char ret_version[VERSION_LEN])
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
		if (dots > 0 && n < VERSION_LEN) {
			memcpy(ret_version, text + i, n);
			ret_version[n] = '\0';
			return true;
		}
		i += n;
	}
	return false;
}

static void wait_free(struct versions_wait *wait)
{
	list_remove(&wait->node);
	free(wait);
}

void versions_cancel(struct versions_wait *wait)
{
	wait_free(wait);
}

static void on_time(void *ctx);

struct versions *versions_new(struct run_service *s)
{
	struct versions *v = NEW(struct versions);

	v->service = s;
	list_init(&v->waits);
	buf_init(&v->output, OUTPUT_BYTES);
	v->timer = timer_new(s->config.loop, on_time, v);
	return v;
}

static void end_box(struct versions *v)
{
	if (v->box)
		pools_end(v->service->pools, TAKE_PTR(v->box));
}

void versions_free(struct versions *v)
{
	struct versions_wait *wait;

	if (!v)
		return;
	LIST_FOREACH (wait, &v->waits, struct versions_wait, node)
		wait_free(wait);
	end_box(v);
	timer_free(v->timer);
	buf_done(&v->output);
	free(v->list);
	free(v);
}

const char *versions_of(const struct versions *v, const struct runner *runner)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->list[i].runner == runner && v->list[i].text[0])
			return v->list[i].text;
	return NULL;
}

/* A waiter may cancel others. */
static void finish(struct versions *v)
{
	v->known = true;
	timer_stop(v->timer);
	end_box(v);
	while (!list_is_empty(&v->waits)) {
		struct versions_wait *wait = LIST_FIRST(&v->waits, struct versions_wait, node);
		versions_fn *fn = wait->fn; // NOLINT: one that was freed has left the list
		void *ctx = wait->ctx;

		wait_free(wait);
		fn(ctx);
	}
}

static void on_time(void *ctx)
{
	finish(ctx);
}

static int ask(struct versions *v, struct error *err)
{
	const struct runner *runner = v->list[v->next].runner;
	const struct policy_command command = {
		.runner = runner,
		.command = runner->version_command,
		.source = runner->source,
	};
	cleanup_str_list char **argv = policy_argv(&command);
	cleanup_str_list char **env = env_make(runner->env, runner->compile_env, 0, NULL);
	const struct exec_plan plan = {
		.id = (uint32_t)v->next + 1,
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.cwd = "",
		.stdout_max = OUTPUT_BYTES,
		.stderr_max = OUTPUT_BYTES,
	};

	buf_reset(&v->output);
	return box_exec(v->box, &plan, err);
}

static void ask_next(struct versions *v)
{
	struct error err = {0};

	while (++v->next < v->count) {
		if (ask(v, &err) == 0)
			return;
		log_debug("version of %s: %s", v->list[v->next].runner->name, err.msg);
		error_clear(&err);
	}
	finish(v);
}

static void on_output(void *ctx, uint32_t id attr_unused, enum output_stream stream attr_unused,
                      const char *data, size_t len)
{
	struct versions *v = ctx;

	(void)!buf_add(&v->output, data, len); /* the rest has no version */
}

static void on_done(void *ctx, uint32_t id attr_unused, const struct exec_facts *facts attr_unused)
{
	struct versions *v = ctx;

	(void)!version_find(v->output.data ? v->output.data : "", v->output.len,
	                    v->list[v->next].text);
	ask_next(v);
}

static void on_exec_failed(void *ctx, uint32_t id attr_unused, const struct error *err)
{
	struct versions *v = ctx;

	log_debug("version of %s: %s", v->list[v->next].runner->name, err->msg);
	ask_next(v);
}

static void on_lost(void *ctx, const struct error *err)
{
	log_debug("versions of toolchains: %s", err->msg);
	finish(ctx);
}

static void on_nothing(void *ctx attr_unused)
{
}

static void on_started(void *ctx attr_unused, uint32_t id attr_unused)
{
}

static void on_report(void *ctx attr_unused, uint32_t id attr_unused, const char *data attr_unused,
                      size_t len attr_unused)
{
}

static void on_denial(void *ctx attr_unused, uint32_t id attr_unused, const char *what attr_unused,
                      uint64_t count attr_unused)
{
}

/* The installed languages that can say it. */
static void list_runners(struct versions *v)
{
	const struct runner *runner;
	size_t n = 0;

	while (runners_at(v->service->rules.runners, n))
		n++;
	v->list = xcalloc(n + 1, sizeof(*v->list));
	for (size_t i = 0; (runner = runners_at(v->service->rules.runners, i)); i++)
		if (runner->version_command && runner_is_installed(runner))
			v->list[v->count++].runner = runner;
}

/* A box as for an execution without a tenant's wishes. */
static int make_box(struct versions *v, struct error *err)
{
	const struct run_request request = {.language = v->list[0].runner->name,
	                                    .code = (char *)(uintptr_t) " ",
	                                    .code_len = 1,
	                                    .memory_bytes = MEMORY};
	const struct box_events events = {
		.ctx = v,
		.on_ready = on_nothing,
		.on_started = on_started,
		.on_output = on_output,
		.on_report = on_report,
		.on_denial = on_denial,
		.on_done = on_done,
		.on_exec_failed = on_exec_failed,
		.on_lost = on_lost,
		.on_gone = on_nothing,
	};
	struct policy_decision decision;
	struct policy_stack stack = {0};
	int r;

	if (policy_decide(&v->service->rules, &stack, &request, &decision, err) < 0)
		return -1;
	box_spec_make_id(decision.spec.id);
	(void)!str_copy(decision.spec.tenant, BOX_TENANT_LEN, TENANT_DEFAULT);
	decision.spec.zygote[0] = '\0';
	r = box_create(v->service->config.driver, &decision.spec, &events, &v->box, err);
	policy_decision_done(&decision);
	return r;
}

/* Return: false: nothing can be asked, which is known from now on. */
static bool begin(struct versions *v)
{
	struct error err = {0};

	list_runners(v);
	if (v->count > 0 && make_box(v, &err) == 0 && ask(v, &err) == 0) {
		timer_start(v->timer, TIME_MAX_US);
		return true;
	}
	log_debug("versions of toolchains: %s", err.msg);
	v->known = true;
	end_box(v);
	return false;
}

struct versions_wait *versions_want(struct versions *v, versions_fn *fn, void *ctx)
{
	struct versions_wait *wait;

	if (v->known || v->service->draining || (!v->list && !begin(v)))
		return NULL;
	wait = NEW(struct versions_wait);
	wait->fn = fn;
	wait->ctx = ctx;
	list_append(&v->waits, &wait->node);
	return wait;
}
