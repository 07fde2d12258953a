/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/pool/pool_demand.h"
#include "core/pool/pool_shape.h"
#include "core/tenant/principal.h"
#include "core/tenant/scheduler.h"
#include "io/loop.h"

/*
 * A timer drops old and surplus members and makes missing ones, a few at a time, first for the pool
 * that lacks the largest part of its target. It fires shortly after a member was taken (the request
 * goes first), when one was made or lost, and every second while there is a pool.
 *
 * A request gets the youngest ready member: its memory is still in the caches, and a shrinking pool
 * drops the oldest.
 */

#define KEYS_MAX     32                  /* pools */
#define KEYS_TENANT  (KEYS_MAX / 4)      /* pools per tenant */
#define SEEN_MAX     64                  /* shapes without a pool */
#define SEEN_US      (60 * USEC_PER_SEC) /* remembered */
#define SHARED_PART  4                   /* part of the members for tenants below their share */
#define MAKE_MAX     2                   /* members at once */
#define MAKE_BESIDE  6                   /* of a tenant beside others: each takes longer */
#define DELAY_US     (2 * USEC_PER_MS)   /* after a member was taken */
#define BUSY_US      (20 * USEC_PER_MS)  /* until there may be room */
#define LOOK_US      (5 * USEC_PER_MS)   /* until programs may have ended */
#define PATIENCE_US  (500 * USEC_PER_MS) /* wait that long while enough are left */
#define TICK_US      USEC_PER_SEC
#define BUILD_US     (15 * USEC_PER_SEC) /* slower members have failed */
#define BACKOFF_US   (100 * USEC_PER_MS) /* doubles */
#define BACKOFF_MAX  8
#define MEMORY_GUESS (16ULL << 20) /* without a memory counter */

/* MAKING -> READY -> taken; or -> ENDING from each. */
enum member_state {
	MEMBER_MAKING,
	MEMBER_READY,
	MEMBER_ENDING,
	MEMBER_STATE_COUNT
};

struct pool {
	struct list node; /* pools.list */
	struct pools *all;
	struct pool_shape shape;                 /* owned */
	struct list members[MEMBER_STATE_COUNT]; /* struct member.node; ENDING is empty */
	size_t counts[MEMBER_STATE_COUNT];
	size_t floor;
	char tenant[TENANT_NAME_MAX + 1]; /* whose requests caused it; "": pools_keep */
	struct pool_demand demand;
	uint64_t hits, misses, failures, made;
	uint64_t memory_bytes;
	unsigned failed_in_row;
	uint64_t not_before_us; /* after failures */
};

struct member {
	struct list node;
	struct pool *pool; /* NULL: ENDING */
	struct pools *all;
	enum member_state state;
	struct box *box;
	uint64_t asked_us;
	uint64_t memory_bytes;
	struct box_counters before;
};

/* By the pools of a tenant. */
struct owned {
	size_t pools, making, alive;
};

struct seen {
	uint64_t hash, at_us;
};

struct pools {
	struct pools_config config;
	struct list list; /* struct pool */
	size_t pools_count;
	size_t owners;      /* tenants with a pool */
	struct list ending; /* struct member */
	size_t counts[MEMBER_STATE_COUNT];
	uint64_t memory_bytes;
	uint64_t hits, misses;
	struct seen seen[SEEN_MAX];
	size_t seen_next;
	struct timer *timer;
	uint64_t due_us; /* 0: stopped */
	bool draining;
};

static void on_timer(void *ctx);

struct pools *pools_new(const struct pools_config *config)
{
	struct pools *p = NEW(struct pools);
	size_t boxes = config->driver->caps.boxes_max / 4;

	p->config = *config;
	/* Leave places for boxes of requests. */
	if (boxes > 0 && p->config.max > boxes)
		p->config.max = boxes;
	list_init(&p->list);
	list_init(&p->ending);
	p->timer = timer_new(config->loop, on_timer, p);
	return p;
}

static size_t count_alive(const size_t counts[MEMBER_STATE_COUNT])
{
	return counts[MEMBER_MAKING] + counts[MEMBER_READY];
}

static struct owned count_owned(const struct pools *p, const char *tenant)
{
	struct owned sum = {0};
	const struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node)
		if (str_equal(pool->shape.spec.tenant, tenant)) {
			sum.pools++;
			sum.making += pool->counts[MEMBER_MAKING];
			sum.alive += count_alive(pool->counts);
		}
	return sum;
}

static void pool_free(struct pool *pool)
{
	list_remove(&pool->node);
	pool->all->pools_count--;
	pool->all->owners -= count_owned(pool->all, pool->shape.spec.tenant).pools == 0;
	pool_shape_done(&pool->shape);
	free(pool);
}

/* on_gone frees the members. */
static void orphan_members(struct list *list)
{
	struct member *m;

	LIST_FOREACH (m, list, struct member, node) {
		list_remove(&m->node);
		m->all = NULL;
		box_destroy(m->box);
	}
}

void pools_free(struct pools *p)
{
	struct pool *pool;

	if (!p)
		return;
	LIST_FOREACH (pool, &p->list, struct pool, node) {
		orphan_members(&pool->members[MEMBER_MAKING]);
		orphan_members(&pool->members[MEMBER_READY]);
		pool_free(pool);
	}
	orphan_members(&p->ending);
	timer_free(p->timer);
	free(p);
}

/* Keeps an earlier time. */
static void schedule_timer(struct pools *p, uint64_t delay_us)
{
	uint64_t due_us = clock_us() + delay_us;

	if (p->due_us != 0 && p->due_us <= due_us)
		return;
	p->due_us = due_us;
	timer_start(p->timer, delay_us);
}

static void set_state(struct member *m, enum member_state next)
{
	struct pool *pool = m->pool;

	list_remove(&m->node);
	pool->counts[m->state]--;
	m->all->counts[m->state]--;
	m->state = next;
	m->all->counts[next]++;
	if (next == MEMBER_ENDING) {
		list_append(&m->all->ending, &m->node);
		return;
	}
	pool->counts[next]++;
	list_append(&pool->members[next], &m->node);
}

static void drop_memory(struct member *m)
{
	m->pool->memory_bytes -= m->memory_bytes;
	m->all->memory_bytes -= m->memory_bytes;
	m->memory_bytes = 0;
}

static void end_member(struct member *m)
{
	if (m->state == MEMBER_ENDING)
		return;
	drop_memory(m);
	set_state(m, MEMBER_ENDING);
	m->pool = NULL;
	box_destroy(m->box); /* on_gone follows */
}

static void fail_member(struct member *m, const struct error *err)
{
	struct pool *pool = m->pool;
	uint64_t delay = BACKOFF_US;

	if (m->state == MEMBER_ENDING)
		return;
	log_debug("a box of a pool was lost: %s", err->msg);
	pool->failures++;
	metrics_count_for(m->all->config.metrics, METRIC_POOL_DISCARDS, METRIC_LABELS("failed"), 1);
	/* The loss of a ready member is an accident; a failure to make one is likely to repeat. */
	if (m->state == MEMBER_MAKING) {
		delay <<= pool->failed_in_row;
		pool->failed_in_row += pool->failed_in_row < BACKOFF_MAX;
	}
	pool->not_before_us = clock_us() + delay;
	end_member(m);
	schedule_timer(pool->all, delay);
}

static void set_ready(struct member *m)
{
	struct pool *pool = m->pool;
	uint64_t fill_us = clock_us() - m->asked_us;

	if (m->state != MEMBER_MAKING)
		return;
	box_counters(m->box, COUNTERS_FOR_VIEW, &m->before);
	m->memory_bytes =
		m->before.memory_bytes == COUNTER_UNKNOWN ? MEMORY_GUESS : m->before.memory_bytes;
	pool->memory_bytes += m->memory_bytes;
	m->all->memory_bytes += m->memory_bytes;
	pool->made++;
	pool->failed_in_row = 0;
	pool_demand_made(&pool->demand, fill_us);
	metrics_observe(m->all->config.metrics, METRIC_POOL_FILL, (double)fill_us / 1e6);
	set_state(m, MEMBER_READY);
	schedule_timer(m->all, 0);
}

static void on_ready(void *ctx)
{
	struct member *m = ctx;

	if (m->state == MEMBER_MAKING && !m->pool->shape.argv)
		set_ready(m);
}

static void on_prepared(void *ctx, uint32_t id attr_unused)
{
	set_ready(ctx);
}

static void on_exec_failed(void *ctx, uint32_t id attr_unused, const struct error *err)
{
	fail_member(ctx, err);
}

static void on_lost(void *ctx, const struct error *err)
{
	fail_member(ctx, err);
}

static void on_gone(void *ctx)
{
	struct member *m = ctx;
	struct pools *p = m->all;

	list_remove(&m->node);
	free(m);
	if (!p)
		return; /* pools_free ran */
	p->counts[MEMBER_ENDING]--;
	if (p->draining && pools_count(p) == 0)
		p->config.on_drained(p->config.ctx);
}

/* Resident runners only: other prepared processes have not started. */
static void on_started(void *ctx, uint32_t id attr_unused)
{
	set_ready(ctx);
}

static void on_output(void *ctx attr_unused, uint32_t id attr_unused,
                      enum output_stream stream attr_unused, const char *data attr_unused,
                      size_t len attr_unused)
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

/* A resident runner exited. */
static void on_done(void *ctx, uint32_t id attr_unused, const struct exec_facts *facts)
{
	struct error err = {0};

	(void)error_set(&err, ERR_BOX_FAILED, 0, "the runner ended while it waited (%s %d)",
	                facts->signalled ? "signal" : "status", facts->status);
	fail_member(ctx, &err);
}

static struct box_events events_of(struct member *m)
{
	return (struct box_events){
		.ctx = m,
		.on_ready = on_ready,
		.on_prepared = on_prepared,
		.on_started = on_started,
		.on_output = on_output,
		.on_report = on_report,
		.on_denial = on_denial,
		.on_done = on_done,
		.on_exec_failed = on_exec_failed,
		.on_lost = on_lost,
		.on_gone = on_gone,
	};
}

static int prepare_member(struct member *m, struct error *err)
{
	const struct pool_shape *shape = &m->pool->shape;
	const struct prepare_plan plan = {
		.id = POOL_EXEC_ID,
		.argv = (const char *const *)shape->argv,
		.env = (const char *const *)shape->env,
		.report = shape->runner && shape->runner->report,
	};
	struct exec_plan resident = {
		.id = POOL_EXEC_ID, .argv = plan.argv, .env = plan.env, .cwd = "", .keep = true};

	if (!shape->resident)
		return shape->argv ? box_prepare(m->box, &plan, err) : 0;
	assert(shape->runner);
	resident.label = shape->spec.keep ? shape->runner->name : NULL;
	return box_exec(m->box, &resident, err);
}

static void make_member(struct pool *pool)
{
	struct member *m = NEW(struct member);
	const struct box_events events = events_of(m);
	struct box_spec spec = pool->shape.spec;
	struct error err = {0};

	list_init(&m->node);
	m->pool = pool;
	m->all = pool->all;
	m->asked_us = clock_us();
	box_spec_make_id(spec.id);
	spec.spare = spec.keep;
	if (box_create(pool->all->config.driver, &spec, &events, &m->box, &err) < 0) {
		log_debug("no box for a pool: %s", err.msg);
		pool->failures++;
		pool->not_before_us = clock_us() + (BACKOFF_US << pool->failed_in_row);
		schedule_timer(pool->all, BACKOFF_US << pool->failed_in_row);
		pool->failed_in_row += pool->failed_in_row < BACKOFF_MAX;
		free(m);
		return;
	}
	list_append(&pool->members[MEMBER_MAKING], &m->node);
	pool->counts[MEMBER_MAKING]++;
	pool->all->counts[MEMBER_MAKING]++;
	if (prepare_member(m, &err) < 0)
		fail_member(m, &err);
}

static void end_all(struct pool *pool)
{
	struct member *m;

	metrics_count_for(pool->all->config.metrics, METRIC_POOL_DISCARDS, METRIC_LABELS("flushed"),
	                  (double)count_alive(pool->counts));
	LIST_FOREACH (m, &pool->members[MEMBER_MAKING], struct member, node)
		end_member(m);
	LIST_FOREACH (m, &pool->members[MEMBER_READY], struct member, node)
		end_member(m);
}

static bool is_idle(const struct pool *pool, uint64_t now_us)
{
	return now_us - pool->demand.asked_us >= pool->all->config.idle_us;
}

static size_t target_of(struct pool *pool, uint64_t now_us)
{
	if (is_idle(pool, now_us))
		return pool->floor;
	return pool_demand_target(&pool->demand, pool->floor, pool->all->config.max, now_us);
}

/* Drop members that are old, too slow to make, or surplus (oldest first). */
static void trim_pool(struct pool *pool, uint64_t now_us)
{
	const struct pools_config *c = &pool->all->config;
	size_t target = target_of(pool, now_us);
	struct error err = {0};
	struct member *m;

	LIST_FOREACH (m, &pool->members[MEMBER_MAKING], struct member, node)
		if (now_us - m->asked_us > BUILD_US) {
			(void)error_set(&err, ERR_BOX_FAILED, 0, "it was not ready in time");
			fail_member(m, &err);
		}
	LIST_FOREACH (m, &pool->members[MEMBER_READY], struct member, node) {
		bool old = now_us - m->asked_us >= c->age_us;
		bool many = pool->counts[MEMBER_READY] > target;

		if (!old && !many)
			break; /* others are younger */
		metrics_count_for(c->metrics, METRIC_POOL_DISCARDS,
		                  METRIC_LABELS(old ? "old" : "idle"), 1);
		end_member(m);
	}
}

/* An idle shape makes room for another. */
static bool is_forgotten(const struct pool *pool, uint64_t now_us)
{
	return pool->floor == 0 && count_alive(pool->counts) == 0 && is_idle(pool, now_us);
}

static void trim_pools(struct pools *p, uint64_t now_us)
{
	struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node) {
		trim_pool(pool, now_us);
		if (is_forgotten(pool, now_us))
			pool_free(pool);
	}
}

/* Making a member takes milliseconds of a processor from running programs. While half of the pool
 * is ready, the rest waits, at most PATIENCE_US: a longer program hardly notices. */
static bool can_wait(struct pool *pool, uint64_t now_us)
{
	size_t have = pool->counts[MEMBER_READY];

	return pool->all->config.scheduler->counts[SCHEDULER_RUNNING] > 0 && have > 0 &&
	       have * 2 >= target_of(pool, now_us) && now_us < pool->demand.asked_us + PATIENCE_US;
}

/* Sessions that wait for a box get it first: filling their pools would take the processor from
 * executions of other tenants, see scheduler.h. */
static bool is_delayed(const struct pool *pool)
{
	return pool->shape.resident && scheduler_delays_boxes(pool->all->config.scheduler);
}

/* The last members and the last memory are for tenants that have less than their equal share. */
static bool has_room(const struct pool *pool)
{
	const struct pools *p = pool->all;
	bool over = p->owners > 1 &&
	            count_owned(p, pool->shape.spec.tenant).alive * p->owners >= p->config.max;
	size_t members = over ? p->config.max / SHARED_PART : 0;
	uint64_t memory = over ? p->config.memory_max / SHARED_PART : 0;

	return count_alive(p->counts) < p->config.max - members &&
	       p->memory_bytes < p->config.memory_max - memory;
}

/* One at a time while all cores may be busy: members take the processor from programs of their
 * tenant. Of several tenants each has places of its own, as the kernel gives each its share. These
 * are more: beside the programs of others a member mostly waits for the processor. */
static bool has_place(const struct pool *pool)
{
	const struct pools *p = pool->all;
	const struct scheduler *s = p->config.scheduler;
	bool busy = s->counts[SCHEDULER_RUNNING] >= p->config.cores || scheduler_is_congested(s);
	size_t own = count_owned(p, pool->shape.spec.tenant).making;

	if (p->owners <= 1)
		return own < (busy ? 1 : MAKE_MAX);
	return own < MAKE_BESIDE &&
	       p->counts[MEMBER_MAKING] < MAKE_BESIDE * p->config.cores + (own == 0);
}

/* Lacks the largest part of its target. *ret_wait_us: some pool can or must wait. */
static struct pool *find_neediest(struct pools *p, uint64_t now_us, uint64_t *ret_wait_us)
{
	struct pool *pool, *best = NULL;
	double best_lack = 0;

	LIST_FOREACH (pool, &p->list, struct pool, node) { // NOLINT: a freed one is on no list
		size_t target = target_of(pool, now_us);
		size_t have = count_alive(pool->counts);
		double lack = target > have ? (double)(target - have) / (double)target : 0;

		if (lack <= best_lack || now_us < pool->not_before_us || is_delayed(pool) ||
		    !has_room(pool))
			continue;
		if (can_wait(pool, now_us)) {
			*ret_wait_us = LOOK_US;
		} else if (!has_place(pool)) {
			*ret_wait_us = *ret_wait_us ? *ret_wait_us : BUSY_US;
		} else {
			best = pool;
			best_lack = lack;
		}
	}
	return best;
}

static void fill_pools(struct pools *p, uint64_t now_us)
{
	struct pool *pool;
	uint64_t wait_us = 0;

	while (pools_count(p) < p->config.max * 2 && (pool = find_neediest(p, now_us, &wait_us))) {
		make_member(pool); /* failures delay the next */
		/* Pools take turns. */
		list_remove(&pool->node);
		list_append(&p->list, &pool->node);
	}
	if (wait_us > 0)
		schedule_timer(p, wait_us);
}

static void on_timer(void *ctx)
{
	struct pools *p = ctx;
	uint64_t now_us = clock_us();
	p->due_us = 0;
	if (p->draining)
		return;
	trim_pools(p, now_us);
	fill_pools(p, now_us);
	if (!list_is_empty(&p->list))
		schedule_timer(p, TICK_US);
}

static struct pool *find_pool(struct pools *p, const struct pool_shape *shape)
{
	struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node)
		if (pool_shape_is(&pool->shape, shape))
			return pool;
	return NULL;
}

static struct pool *add_pool(struct pools *p, const struct pool_shape *shape, const char *tenant)
{
	struct pool *pool = NEW(struct pool);

	pool->all = p;
	pool_shape_copy(shape, &pool->shape);
	for (size_t i = 0; i < MEMBER_STATE_COUNT; i++)
		list_init(&pool->members[i]);
	(void)!str_copy(pool->tenant, sizeof(pool->tenant), tenant);
	p->owners += count_owned(p, shape->spec.tenant).pools == 0;
	list_append(&p->list, &pool->node);
	p->pools_count++;
	return pool;
}

void pools_keep(struct pools *p, const struct policy_decision *decision, size_t floor)
{
	struct pool_shape shape;
	struct pool *pool;

	if (p->config.max == 0 || !pool_shape_of(decision, TENANT_DEFAULT, &shape))
		return;
	pool = find_pool(p, &shape);
	if (!pool && p->pools_count < KEYS_MAX)
		pool = add_pool(p, &shape, "");
	if (!pool)
		return;
	pool->floor = floor;
	schedule_timer(p, 0);
}

/* If not, remember it. */
static bool was_seen(struct pools *p, uint64_t hash, uint64_t now_us)
{
	for (size_t i = 0; i < SEEN_MAX; i++)
		if (p->seen[i].hash == hash && p->seen[i].at_us != 0 &&
		    now_us - p->seen[i].at_us < SEEN_US) {
			p->seen[i].at_us = 0;
			return true;
		}
	p->seen[p->seen_next] = (struct seen){hash, now_us};
	p->seen_next = (p->seen_next + 1) % SEEN_MAX;
	return false;
}

/* Only a shape requested repeatedly gets a pool. Return: NULL if not. */
static struct pool *consider_shape(struct pools *p, const struct pool_shape *shape,
                                   const char *tenant, uint64_t now_us)
{
	const struct pool *pool;
	size_t caused = 0;

	LIST_FOREACH (pool, &p->list, struct pool, node)
		caused += pool->floor == 0 && str_equal(pool->tenant, tenant);
	if (!was_seen(p, shape->hash, now_us) || p->pools_count >= KEYS_MAX ||
	    caused >= KEYS_TENANT)
		return NULL;
	return add_pool(p, shape, tenant);
}

static void take_member(struct pool *pool, struct member *m, struct pool_hit *ret_hit)
{
	*ret_hit = (struct pool_hit){.box = m->box,
	                             .prepared = pool->shape.argv != NULL,
	                             .resident = pool->shape.resident,
	                             .key = pool->shape.hash,
	                             .before = m->before};
	drop_memory(m);
	list_remove(&m->node);
	pool->counts[m->state]--;
	m->all->counts[m->state]--;
	free(m); /* the box's new owner calls box_give before any event */
}

static void count_take(struct pools *p, const char *result)
{
	metrics_count_for(p->config.metrics, METRIC_POOL_TAKES, METRIC_LABELS(result), 1);
}

bool pools_take(struct pools *p, const struct policy_decision *decision, const char *tenant,
                struct pool_hit *ret_hit)
{
	uint64_t now_us = clock_us();
	struct member *m = NULL;
	struct pool_shape shape;
	struct pool *pool;

	if (p->config.max == 0 || p->draining || !pool_shape_of(decision, tenant, &shape))
		return false;
	pool = find_pool(p, &shape);
	if (!pool)
		pool = consider_shape(p, &shape, tenant, now_us);
	if (pool) {
		const struct list *ready = &pool->members[MEMBER_READY];

		if (!list_is_empty(ready))
			m = LIST_ENTRY(ready->prev, struct member, node);
		if (m && now_us - m->asked_us >= p->config.age_us)
			m = NULL;
		*(m ? &pool->hits : &pool->misses) += 1;
		pool_demand_asked(&pool->demand, m != NULL, now_us);
		schedule_timer(p, DELAY_US);
	}
	*(m ? &p->hits : &p->misses) += 1;
	if (m)
		take_member(pool, m, ret_hit);
	else
		count_take(p, "miss");
	return m != NULL;
}

void pools_confirm(struct pools *p)
{
	count_take(p, "hit");
}

void pools_discard(struct pools *p, uint64_t key, struct box *box)
{
	struct pool *pool;

	p->hits--;
	p->misses++;
	count_take(p, "miss");
	LIST_FOREACH (pool, &p->list, struct pool, node) {
		if (pool->shape.hash != key)
			continue;
		/* May be a later pool of this shape. */
		pool->hits -= pool->hits > 0;
		pool->misses++;
		pool->failures++;
	}
	metrics_count_for(p->config.metrics, METRIC_POOL_DISCARDS, METRIC_LABELS("failed"), 1);
	pools_end(p, box);
}

void pools_end(struct pools *p, struct box *box)
{
	struct member *m = NEW(struct member);
	const struct box_events events = events_of(m);

	m->all = p;
	m->box = box;
	m->state = MEMBER_ENDING;
	p->counts[MEMBER_ENDING]++;
	list_append(&p->ending, &m->node);
	box_give(box, &events, NULL);
	box_destroy(box);
}

void pools_flush(struct pools *p)
{
	struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node) {
		end_all(pool);
		pool->floor = 0;
	}
	if (!list_is_empty(&p->list))
		schedule_timer(p, 0);
}

void pools_forget(struct pools *p, const char *tenant)
{
	struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node)
		if (pool->floor == 0 && str_equal(pool->tenant, tenant)) {
			end_all(pool);
			pool_free(pool);
		}
}

void pools_drain(struct pools *p)
{
	p->draining = true;
	timer_stop(p->timer);
	pools_flush(p);
	timer_stop(p->timer);
}

size_t pools_count(const struct pools *p)
{
	return count_alive(p->counts) + p->counts[MEMBER_ENDING];
}

bool pools_at(const struct pools *p, size_t index, struct pool_info *ret_info)
{
	uint64_t now_us = clock_us();
	struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node) {
		if (index-- > 0)
			continue;
		*ret_info = (struct pool_info){
			.key = pool->shape.hash,
			.language = pool->shape.runner ? pool->shape.runner->name : NULL,
			.spec = &pool->shape.spec,
			.prepared = pool->shape.argv != NULL,
			.resident = pool->shape.resident,
			.ready = pool->counts[MEMBER_READY],
			.making = pool->counts[MEMBER_MAKING],
			.target = target_of(pool, now_us),
			.floor = pool->floor,
			.memory_bytes = pool->memory_bytes,
			.hits = pool->hits,
			.misses = pool->misses,
			.failures = pool->failures,
			.made = pool->made,
			.fill_us = (uint64_t)pool->demand.fill_us,
			.per_second = pool_demand_rate(&pool->demand, now_us) * 1e6,
			.idle_us = pool->demand.asked_us ? now_us - pool->demand.asked_us : 0,
		};
		return true;
	}
	return false;
}

void pools_totals(const struct pools *p, struct pools_totals *ret_totals)
{
	*ret_totals = (struct pools_totals){
		.ready = p->counts[MEMBER_READY],
		.making = p->counts[MEMBER_MAKING],
		.max = p->config.max,
		.memory_bytes = p->memory_bytes,
		.memory_max = p->config.memory_max,
		.hits = p->hits,
		.misses = p->misses,
	};
}
