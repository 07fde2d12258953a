/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_service.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/pool/pool.h"
#include "core/run/facts.h"
#include "core/run/host_memory.h"
#include "core/run/language_check.h"
#include "core/run/run_internal.h"
#include "core/template/images.h"
#include "io/loop.h"

#define BUILD_TIMEOUT_US (15 * USEC_PER_SEC)
#define MEMORY_POLL_US   (250 * USEC_PER_MS)
#define MEMORY_RESERVED  16 /* part of the memory */

/* A driver with few boxes needs them for requests. */
static size_t pooled_max(const struct run_service *s)
{
	const struct config *c = s->config.config;
	size_t boxes = s->rules.driver->caps.boxes_max;
	size_t pooled = c->pools_enabled ? c->pools_max : 0;

	return boxes > 0 && pooled > boxes / 4 ? boxes / 4 : pooled;
}

/* Without those of the pools. 0: the driver has no bound. */
static size_t boxes_max(const struct run_service *s)
{
	size_t boxes = s->rules.driver->caps.boxes_max;

	return boxes > 0 ? boxes - pooled_max(s) : 0;
}

static uint64_t measure_memory(void *ctx attr_unused)
{
	return host_memory_available();
}

static void on_memory_timer(void *ctx)
{
	struct run_service *s = ctx;

	scheduler_poll(&s->scheduler, clock_us());
}

static void on_memory_short(void *ctx)
{
	struct run_service *s = ctx;

	timer_start(s->memory_timer, MEMORY_POLL_US);
}

static void on_turn_timer(void *ctx)
{
	struct run_service *s = ctx;

	scheduler_continue(&s->scheduler, clock_us());
}

static void on_rest(void *ctx, uint64_t delay_us)
{
	struct run_service *s = ctx;

	timer_start(s->turn_timer, delay_us);
}

static void init_scheduler(struct run_service *s)
{
	const struct config *c = s->config.config;
	uint64_t reserve = c->memory_reserve_bytes;

	scheduler_init(
		&s->scheduler,
		&(struct scheduler_config){
			.running_max = c->max_running,
			.building_max =
				c->max_starting ? c->max_starting : 2 * (size_t)s->rules.cores,
			.waiting_max = c->max_queued,
			.boxes_max = boxes_max(s),
			.measure = measure_memory,
			.memory_reserve = reserve ? reserve : host_memory_total() / MEMORY_RESERVED,
			.on_short = on_memory_short,
			.on_rest = on_rest,
			.ctx = s,
		});
}

static void abort_all(struct run_service *s)
{
	struct run *e;

	/* Waiting runs first, or they would get the places of the others. */
	LIST_FOREACH (e, &s->all, struct run, node)
		if (e->state == RUN_WAITING)
			run_abort(e);
	LIST_FOREACH (e, &s->all, struct run, node)
		run_abort(e);
}

static void on_drain_timer(void *ctx)
{
	struct run_service *s = ctx;
	void (*on_drained)(void *ctx) = s->on_drained;

	if (!list_is_empty(&s->all)) {
		abort_all(s);
		return;
	}
	if (pools_count(s->pools) > 0)
		return;
	s->on_drained = NULL;
	if (on_drained)
		on_drained(s->drained_ctx);
}

static bool is_empty(const struct run_service *s)
{
	return list_is_empty(&s->all) && pools_count(s->pools) == 0;
}

static void on_pools_drained(void *ctx)
{
	struct run_service *s = ctx;

	if (s->draining && is_empty(s))
		timer_start(s->drain_timer, 0);
}

static struct pools *new_pools(struct run_service *s)
{
	const struct config *c = s->config.config;

	return pools_new(&(struct pools_config){
		.loop = s->config.loop,
		.driver = s->config.driver,
		.scheduler = &s->scheduler,
		.metrics = s->config.metrics,
		.max = pooled_max(s),
		.memory_max = c->pools_memory_bytes,
		.age_us = c->pools_age_us,
		.idle_us = c->pools_idle_us,
		.cores = s->rules.cores,
		.on_drained = on_pools_drained,
		.ctx = s,
	});
}

struct run_service *run_service_new(const struct run_service_config *config)
{
	struct run_service *s = NEW(struct run_service);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	s->config = *config;
	if (s->config.build_timeout_us == 0)
		s->config.build_timeout_us = BUILD_TIMEOUT_US;
	s->rules = (struct policy_rules){
		.config = config->config,
		.runners = config->runners,
		.driver = config->driver,
		.cores = cores > 0 ? (unsigned)cores : 1,
		.policies = config->policies,
		.secrets = config->secrets,
		.toolchains = config->toolchains,
	};
	list_init(&s->all);
	s->memory_timer = timer_new(config->loop, on_memory_timer, s);
	s->turn_timer = timer_new(config->loop, on_turn_timer, s);
	init_scheduler(s);
	s->drain_timer = timer_new(config->loop, on_drain_timer, s);
	s->pools = new_pools(s);
	s->language_checks = language_checks_new(s);
	s->facts = facts_maker_new();
	s->builds = build_cache_new(config->config->builds_cache_bytes);
	return s;
}

void run_service_free(struct run_service *s)
{
	struct run *e;

	if (!s)
		return;
	LIST_FOREACH (e, &s->all, struct run, node)
		run_orphan(e);
	language_checks_free(s->language_checks);
	facts_maker_free(s->facts);
	pools_free(s->pools);
	build_cache_free(s->builds);
	timer_free(s->drain_timer);
	timer_free(s->memory_timer);
	timer_free(s->turn_timer);
	free(s);
}

struct tenant *run_service_tenant(const struct run_service *s, const char *name)
{
	return s->config.tenants ? tenants_find(s->config.tenants, name ? name : TENANT_DEFAULT)
	                         : NULL;
}

int run_service_choose(const struct run_service *s, const struct tenant *tenant, const char *asked,
                       struct policy_stack *ret_stack, struct error *err)
{
	*ret_stack = (struct policy_stack){0};
	if (!s->rules.policies)
		return 0;
	return policy_choose(s->rules.policies, tenant ? tenant->policy : NULL, asked, ret_stack,
	                     err);
}

const struct policies *run_service_policies(const struct run_service *s)
{
	return s->rules.policies;
}

const struct policy *run_service_policy_of(const struct run_service *s, const char *tenant)
{
	struct policy_stack stack;
	struct error err = {0};

	return run_service_choose(s, run_service_tenant(s, tenant), NULL, &stack, &err) < 0
	               ? NULL
	               : stack.own;
}

void run_service_explain(const struct run_service *s, const struct run_request *request,
                         struct policy_explanation *ret_explanation)
{
	struct policy_stack stack;

	*ret_explanation = (struct policy_explanation){0};
	if (run_service_choose(s, run_service_tenant(s, request->tenant), request->policy, &stack,
	                       &ret_explanation->err) == 0)
		policy_explain(&s->rules, &stack, request, ret_explanation);
}

void run_service_check_drained(struct run_service *s)
{
	if (s->draining && is_empty(s))
		timer_start(s->drain_timer, 0);
}

struct language_checks *run_service_language_checks(struct run_service *s)
{
	return s->language_checks;
}

const struct toolchains *run_service_toolchains(const struct run_service *s)
{
	return s->config.toolchains;
}

void run_service_set_library(struct run_service *s, run_library_fn *fn, void *ctx)
{
	s->library = fn;
	s->library_ctx = ctx;
}

struct image *run_service_library(struct run_service *s, struct template *t, const struct runner *r,
                                  struct box_spec *spec)
{
	struct image *image;

	/* A layer of packages has what its compiler needs. */
	if (!r || !r->library || !s->library || spec->packages[0])
		return NULL;
	image = s->library(s->library_ctx, t, r);
	if (image)
		(void)!str_copy(spec->packages, sizeof(spec->packages), image->name);
	return image_ref(image);
}

struct pools *run_service_pools(struct run_service *s)
{
	return s->pools;
}

void run_service_prepare(struct run_service *s)
{
	const struct runner *runner;

	pools_flush(s->pools);
	for (size_t i = 0; (runner = runners_at(s->rules.runners, i)); i++) {
		const struct run_request request = {
			.language = runner->name, .code = (char *)(uintptr_t) " ", .code_len = 1};
		struct policy_decision decision;
		struct policy_stack stack;
		struct error err = {0};

		/* A waiting process has memory of its own, unlike a zygote's child, and boxes of
		 * languages without runners are empty: requests make pools for both. */
		if ((runner->prepare_command && !runner->zygote) ||
		    (!runner->prepare_command && !runner->session_command))
			continue;
		if (run_service_choose(s, run_service_tenant(s, NULL), NULL, &stack, &err) < 0 ||
		    policy_decide(&s->rules, &stack, &request, &decision, &err) < 0)
			continue;
		pools_keep(s->pools, &decision, s->config.config->pools_floor);
		policy_decision_done(&decision);
	}
}

struct scheduler *run_service_scheduler(struct run_service *s)
{
	return &s->scheduler;
}

uint64_t run_service_memory_low(const struct run_service *s)
{
	uint64_t low = s->config.config->memory_low_bytes;

	/* Tenants below their share may use the upper half of the reserve for new boxes. */
	return low ? low : s->scheduler.config.memory_reserve / 2;
}

void run_service_stats(const struct run_service *s, struct run_service_stats *ret_stats)
{
	*ret_stats = (struct run_service_stats){
		.running = s->scheduler.counts[SCHEDULER_RUNNING],
		.queued = s->scheduler.counts[SCHEDULER_WAITING],
		.boxes = s->boxes,
		.draining = s->draining,
	};
}

const struct seal_key *run_service_seal(const struct run_service *s)
{
	return s->config.seal;
}

const struct driver *run_service_driver(const struct run_service *s)
{
	return s->config.driver;
}

unsigned run_service_cores(const struct run_service *s)
{
	return s->rules.cores;
}

void run_service_drain(struct run_service *s, bool at_once, void (*on_drained)(void *ctx),
                       void *ctx)
{
	bool again = s->draining;

	s->draining = true;
	s->on_drained = on_drained;
	s->drained_ctx = ctx;
	language_checks_stop(s->language_checks);
	pools_drain(s->pools);
	if (is_empty(s)) {
		timer_start(s->drain_timer, 0);
		return;
	}
	if (at_once || again)
		abort_all(s);
	else
		timer_start(s->drain_timer, s->config.config->drain_timeout_us);
}
