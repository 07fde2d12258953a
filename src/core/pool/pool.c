/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>

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
 * Theory of operation. One timer does the work in the background: it drops members that are old or
 * too many and makes missing ones, a few at a time, first for the pool that lacks the largest part
 * of its target. It fires a little after a member was taken (the request that took it goes first),
 * when one was made or lost, and every second while there is a pool.
 *
 * A request gets the youngest ready member: what its making touched is still in the caches, and the
 * oldest are those that a shrinking pool drops.
 *
 * A request only walks the list of pools, which is short, and counts as demand.
 */

#define KEYS_MAX     32                  /* pools */
#define KEYS_TENANT  (KEYS_MAX / 4)      /* that one tenant's requests may cause */
#define SEEN_MAX     64                  /* shapes that were asked for and have no pool */
#define SEEN_US      (60 * USEC_PER_SEC) /* how long that is remembered */
#define DELAY_US     (2 * USEC_PER_MS)   /* after a member was taken */
#define BUSY_US      (20 * USEC_PER_MS)  /* until a look whether there is room to make some */
#define LOOK_US      (5 * USEC_PER_MS)   /* until a look whether programs have ended */
#define PATIENCE_US  (500 * USEC_PER_MS) /* for programs to end, while enough are left */
#define TICK_US      USEC_PER_SEC
#define BUILD_US     (15 * USEC_PER_SEC) /* a member that takes longer is given up */
#define BACKOFF_US   (100 * USEC_PER_MS) /* after a failure; doubles */
#define BACKOFF_MAX  8
#define MEMORY_GUESS (16ULL << 20) /* of a member without a memory counter */

/* MAKING -> READY -> taken, and then no longer ours; or -> ENDING from each. */
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
	struct list members[MEMBER_STATE_COUNT]; /* struct member.node; ENDING ones are in
	                                            all->ending */
	size_t counts[MEMBER_STATE_COUNT];
	size_t floor;
	char tenant[TENANT_NAME_MAX + 1]; /* whose requests caused it; "": the floor's */
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

struct seen {
	uint64_t hash, at_us;
};

struct pools {
	struct pools_config config;
	struct list list; /* struct pool */
	size_t pools_count;
	struct list ending; /* struct member */
	size_t counts[MEMBER_STATE_COUNT];
	uint64_t memory_bytes;
	uint64_t hits, misses;
	struct seen seen[SEEN_MAX];
	size_t seen_next;
	struct timer *timer;
	uint64_t due_us; /* when it fires; 0: it does not */
	bool draining;
};

static void on_timer(void *ctx);

struct pools *pools_new(const struct pools_config *config)
{
	struct pools *p = NEW(struct pools);
	size_t boxes = config->driver->caps.boxes_max / 4;

	p->config = *config;
	/* Others need places for boxes too. */
	if (boxes > 0 && p->config.max > boxes)
		p->config.max = boxes;
	list_init(&p->list);
	list_init(&p->ending);
	p->timer = timer_new(config->loop, on_timer, p);
	return p;
}

static void pool_free(struct pool *pool)
{
	list_remove(&pool->node);
	pool->all->pools_count--;
	pool_shape_done(&pool->shape);
	free(pool);
}

/* Their boxes take them along. */
static void orphan_all(struct list *list)
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
		orphan_all(&pool->members[MEMBER_MAKING]);
		orphan_all(&pool->members[MEMBER_READY]);
		pool_free(pool);
	}
	orphan_all(&p->ending);
	timer_free(p->timer);
	free(p);
}

/* The earliest of what it is set for counts. */
static void schedule(struct pools *p, uint64_t delay_us)
{
	uint64_t due_us = clock_us() + delay_us;

	if (p->due_us != 0 && p->due_us <= due_us)
		return;
	p->due_us = due_us;
	timer_start(p->timer, delay_us);
}

/* The one writer of a member's state. */
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

static void end(struct member *m)
{
	if (m->state == MEMBER_ENDING)
		return;
	drop_memory(m);
	set_state(m, MEMBER_ENDING);
	m->pool = NULL;
	box_destroy(m->box); /* on_gone follows */
}

static void fail(struct member *m, const struct error *err)
{
	struct pool *pool = m->pool;
	uint64_t delay = BACKOFF_US;

	if (m->state == MEMBER_ENDING)
		return;
	log_debug("a box of a pool was lost: %s", err->msg);
	pool->failures++;
	metrics_count_for(m->all->config.metrics, METRIC_POOL_DISCARDS, METRIC_LABELS("failed"), 1);
	/* One that had waited is an accident; one that could not be made will be so again. */
	if (m->state == MEMBER_MAKING) {
		delay <<= pool->failed_in_row;
		pool->failed_in_row += pool->failed_in_row < BACKOFF_MAX;
	}
	pool->not_before_us = clock_us() + delay;
	end(m);
	schedule(pool->all, delay);
}

static void become_ready(struct member *m)
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
	schedule(m->all, 0);
}

static void on_ready(void *ctx)
{
	struct member *m = ctx;

	if (m->state == MEMBER_MAKING && !m->pool->shape.argv)
		become_ready(m);
}

static void on_prepared(void *ctx, uint32_t id attr_unused)
{
	become_ready(ctx);
}

static void on_exec_failed(void *ctx, uint32_t id attr_unused, const struct error *err)
{
	fail(ctx, err);
}

static void on_lost(void *ctx, const struct error *err)
{
	fail(ctx, err);
}

static void on_gone(void *ctx)
{
	struct member *m = ctx;
	struct pools *p = m->all;

	list_remove(&m->node);
	free(m);
	if (!p)
		return; /* the pools went first */
	p->counts[MEMBER_ENDING]--;
	if (p->draining && pools_count(p) == 0)
		p->config.on_drained(p->config.ctx);
}

/* A resident runner runs. Other prepared processes have not started yet. */
static void on_started(void *ctx, uint32_t id attr_unused)
{
	become_ready(ctx);
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

/* Of a runner that stays, and did not. */
static void on_done(void *ctx, uint32_t id attr_unused, const struct exec_facts *facts)
{
	struct error err = {0};

	(void)error_set(&err, ERR_BOX_FAILED, 0, "the runner ended while it waited (%s %d)",
	                facts->signalled ? "signal" : "status", facts->status);
	fail(ctx, &err);
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

static int start_resident(struct member *m, struct error *err)
{
	const struct pool_shape *shape = &m->pool->shape;
	const struct runner *runner = shape->runner;
	struct exec_plan plan = {
		.id = POOL_EXEC_ID,
		.argv = (const char *const *)shape->argv,
		.env = (const char *const *)shape->env,
		.cwd = "",
		.keep = true,
	};

	assert(runner); /* whose process it is */
	plan.label = shape->spec.keep ? runner->name : NULL;
	return box_exec(m->box, &plan, err);
}

static int prepare(struct member *m, struct error *err)
{
	const struct pool_shape *shape = &m->pool->shape;
	const struct prepare_plan plan = {
		.id = POOL_EXEC_ID,
		.argv = (const char *const *)shape->argv,
		.env = (const char *const *)shape->env,
		.report = shape->runner && shape->runner->report,
	};

	if (shape->resident)
		return start_resident(m, err);
	return shape->argv ? box_prepare(m->box, &plan, err) : 0;
}

/* Return: whether it was begun. */
static bool make(struct pool *pool)
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
		schedule(pool->all, BACKOFF_US << pool->failed_in_row);
		pool->failed_in_row += pool->failed_in_row < BACKOFF_MAX;
		free(m);
		return false;
	}
	list_append(&pool->members[MEMBER_MAKING], &m->node);
	pool->counts[MEMBER_MAKING]++;
	pool->all->counts[MEMBER_MAKING]++;
	if (prepare(m, &err) < 0)
		fail(m, &err);
	return true;
}

static size_t alive(const size_t counts[MEMBER_STATE_COUNT])
{
	return counts[MEMBER_MAKING] + counts[MEMBER_READY];
}

/* Keeping in order. */

static void end_all(struct pool *pool)
{
	struct member *m;

	metrics_count_for(pool->all->config.metrics, METRIC_POOL_DISCARDS, METRIC_LABELS("flushed"),
	                  (double)alive(pool->counts));
	LIST_FOREACH (m, &pool->members[MEMBER_MAKING], struct member, node)
		end(m);
	LIST_FOREACH (m, &pool->members[MEMBER_READY], struct member, node)
		end(m);
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

/* Old ones, those that were never finished, and the oldest of those that are too many. */
static void trim(struct pool *pool, uint64_t now_us)
{
	const struct pools_config *c = &pool->all->config;
	size_t target = target_of(pool, now_us);
	struct error err = {0};
	struct member *m;

	LIST_FOREACH (m, &pool->members[MEMBER_MAKING], struct member, node)
		if (now_us - m->asked_us > BUILD_US) {
			(void)error_set(&err, ERR_BOX_FAILED, 0, "it was not ready in time");
			fail(m, &err);
		}
	LIST_FOREACH (m, &pool->members[MEMBER_READY], struct member, node) {
		bool old = now_us - m->asked_us >= c->age_us;
		bool many = pool->counts[MEMBER_READY] > target;

		if (!old && !many)
			break; /* the others are younger */
		metrics_count_for(c->metrics, METRIC_POOL_DISCARDS,
		                  METRIC_LABELS(old ? "old" : "idle"), 1);
		end(m);
	}
}

/* An idle shape makes room for another. */
static bool is_forgotten(const struct pool *pool, uint64_t now_us)
{
	return pool->floor == 0 && alive(pool->counts) == 0 && is_idle(pool, now_us);
}

static void trim_all(struct pools *p, uint64_t now_us)
{
	struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node) {
		trim(pool, now_us);
		if (is_forgotten(pool, now_us))
			pool_free(pool);
	}
}

/*
 * To make one takes some milliseconds of a processor, and the kernel may well take them from the
 * program that runs. While half of a pool is there, nobody needs the other half so soon. Longer
 * than PATIENCE_US nobody is waited for: of a program that long the milliseconds are a hundredth.
 */
static bool can_wait(struct pool *pool, uint64_t now_us)
{
	size_t have = pool->counts[MEMBER_READY];

	return pool->all->config.scheduler->counts[SCHEDULER_RUNNING] > 0 && have > 0 &&
	       have * 2 >= target_of(pool, now_us) && now_us < pool->demand.asked_us + PATIENCE_US;
}

/* Who lacks the largest part of what it should have; of equals the first in the list.
 * *ret_waits: there is one that lacks something and can wait. */
static struct pool *neediest(struct pools *p, uint64_t now_us, bool *ret_waits)
{
	struct pool *pool, *best = NULL;
	double best_lack = 0;

	LIST_FOREACH (pool, &p->list, struct pool, node) {
		size_t target = target_of(pool, now_us);
		size_t have = alive(pool->counts);
		double lack = target > have ? (double)(target - have) / (double)target : 0;

		if (lack > 0 && can_wait(pool, now_us)) {
			*ret_waits = true;
		} else if (lack > best_lack && now_us >= pool->not_before_us) {
			best = pool;
			best_lack = lack;
		}
	}
	return best;
}

/* Requests go first: while somebody waits for a place none is made, and while all cores have
 * something to do one at a time. */
static size_t making_max(const struct pools *p)
{
	const struct scheduler *s = p->config.scheduler;

	if (s->counts[SCHEDULER_WAITING] > 0)
		return 0;
	return s->counts[SCHEDULER_RUNNING] >= p->config.cores ? 1 : 2;
}

static bool has_room(const struct pools *p)
{
	return alive(p->counts) + p->counts[MEMBER_ENDING] < p->config.max * 2 &&
	       alive(p->counts) < p->config.max && p->memory_bytes < p->config.memory_max;
}

static void fill(struct pools *p, uint64_t now_us)
{
	struct pool *pool;
	bool waits = false;

	while (has_room(p) && (pool = neediest(p, now_us, &waits))) {
		if (p->counts[MEMBER_MAKING] >= making_max(p)) {
			schedule(p, BUSY_US);
			return;
		}
		(void)make(pool); /* one that fails is not asked for again at once */
		/* To the end: the others have their turn. */
		list_remove(&pool->node);
		list_append(&p->list, &pool->node);
	}
	if (waits)
		schedule(p, LOOK_US);
}

static void on_timer(void *ctx)
{
	struct pools *p = ctx;
	uint64_t now_us = clock_us();

	p->due_us = 0;
	if (p->draining)
		return;
	trim_all(p, now_us);
	fill(p, now_us);
	if (!list_is_empty(&p->list))
		schedule(p, TICK_US);
}

/* Shapes. */

static struct pool *find(struct pools *p, const struct pool_shape *shape)
{
	struct pool *pool;

	LIST_FOREACH (pool, &p->list, struct pool, node)
		if (pool_shape_is(&pool->shape, shape))
			return pool;
	return NULL;
}

static struct pool *add(struct pools *p, const struct pool_shape *shape, const char *tenant)
{
	struct pool *pool = NEW(struct pool);

	pool->all = p;
	pool_shape_copy(shape, &pool->shape);
	for (size_t i = 0; i < MEMBER_STATE_COUNT; i++)
		list_init(&pool->members[i]);
	(void)!str_copy(pool->tenant, sizeof(pool->tenant), tenant);
	list_append(&p->list, &pool->node);
	p->pools_count++;
	return pool;
}

void pools_keep(struct pools *p, const struct policy_decision *decision, size_t floor)
{
	struct pool_shape shape;
	struct pool *pool;

	if (p->config.max == 0 || !pool_shape_of(decision, &shape))
		return;
	pool = find(p, &shape);
	if (!pool && p->pools_count < KEYS_MAX)
		pool = add(p, &shape, "");
	if (!pool)
		return;
	pool->floor = floor;
	schedule(p, 0);
}

static size_t caused_by(const struct pools *p, const char *tenant)
{
	const struct pool *pool;
	size_t count = 0;

	LIST_FOREACH (pool, &p->list, struct pool, node)
		count += pool->floor == 0 && str_equal(pool->tenant, tenant);
	return count;
}

/* Whether this shape was asked for before, not long ago; from now on it was. */
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

static struct pool *consider(struct pools *p, const struct pool_shape *shape, const char *tenant,
                             uint64_t now_us)
{
	if (!was_seen(p, shape->hash, now_us) || p->pools_count >= KEYS_MAX ||
	    caused_by(p, tenant) >= KEYS_TENANT)
		return NULL;
	return add(p, shape, tenant);
}

static void take(struct pool *pool, struct member *m, struct pool_hit *ret_hit)
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
	free(m); /* the new owner of its box calls box_give before any event */
}

/* The youngest that is ready. */
static struct member *choose(const struct pool *pool, uint64_t now_us)
{
	const struct list *ready = &pool->members[MEMBER_READY];
	struct member *m;

	if (list_is_empty(ready))
		return NULL;
	m = LIST_ENTRY(ready->prev, struct member, node);
	return now_us - m->asked_us < pool->all->config.age_us ? m : NULL;
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

	if (p->config.max == 0 || p->draining || !pool_shape_of(decision, &shape))
		return false;
	pool = find(p, &shape);
	if (!pool)
		pool = consider(p, &shape, tenant, now_us);
	if (pool) {
		m = choose(pool, now_us);
		*(m ? &pool->hits : &pool->misses) += 1;
		pool_demand_asked(&pool->demand, m != NULL, now_us);
		schedule(p, DELAY_US);
	}
	*(m ? &p->hits : &p->misses) += 1;
	if (m)
		take(pool, m, ret_hit);
	else
		count_take(p, "miss");
	return m != NULL;
}

void pools_confirm(struct pools *p)
{
	count_take(p, "hit");
}

/* A hit that was none. */
static void take_back(struct pools *p, uint64_t key)
{
	struct pool *pool;

	p->hits--;
	p->misses++;
	count_take(p, "miss");
	LIST_FOREACH (pool, &p->list, struct pool, node) {
		if (pool->shape.hash != key)
			continue;
		/* It may be another than the one that it was taken from, which has gone. */
		pool->hits -= pool->hits > 0;
		pool->misses++;
		pool->failures++;
	}
}

void pools_discard(struct pools *p, uint64_t key, struct box *box)
{
	struct member *m = NEW(struct member);
	const struct box_events events = events_of(m);

	take_back(p, key);
	m->all = p;
	m->box = box;
	m->state = MEMBER_ENDING;
	p->counts[MEMBER_ENDING]++;
	list_append(&p->ending, &m->node);
	metrics_count_for(p->config.metrics, METRIC_POOL_DISCARDS, METRIC_LABELS("failed"), 1);
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
		schedule(p, 0);
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
	return alive(p->counts) + p->counts[MEMBER_ENDING];
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
