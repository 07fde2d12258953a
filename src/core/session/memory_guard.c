/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/memory_guard.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/observe/metrics.h"
#include "core/session/session_internal.h"
#include "core/tenant/tenant.h"
#include "io/loop.h"

/*
 * Theory of operation. A timer measures what is available, more often when that is near the limit.
 * While it is below, a round begins: the memory of every box is read, BATCH boxes per turn of the
 * loop. Boxes may come and go meanwhile: a sample counts if it has the number of the round. Then
 * the tenant and its box are chosen, and one box is ended. The next round begins when its memory
 * can be free.
 */

#define CALM_US  USEC_PER_SEC
#define NEAR_US  (250 * USEC_PER_MS)
#define NEAR     4 /* times the limit */
#define BATCH    64
#define BATCH_US USEC_PER_MS

struct memory_guard {
	struct memory_guard_config config;
	struct timer *timer;
	uint64_t round;
	bool reading;            /* the round has begun */
	struct tenant no_tenant; /* without accounts */
};

/* A box of a run, or of a session. */
struct candidate {
	struct run *run;
	struct session *session;
	struct tenant *tenant;
	struct memory_sample *sample;
	struct box *box;
};

static struct candidate of_run(struct memory_guard *g, struct run *r)
{
	return (struct candidate){.run = r,
	                          .tenant = r->tenant ? r->tenant : &g->no_tenant,
	                          .sample = &r->memory,
	                          .box = r->state == RUN_RUNNING ? r->box : NULL};
}

static struct candidate of_session(struct memory_guard *g, struct session *s)
{
	return (struct candidate){.session = s,
	                          .tenant = s->account ? s->account : &g->no_tenant,
	                          .sample = &s->memory,
	                          .box = session_is_over(s) || s->box_leaving ? NULL : s->box};
}

/* Calls @visit for every box that can be ended, until that returns false. */
static void visit_boxes(struct memory_guard *g,
                        bool (*visit)(struct memory_guard *g, const struct candidate *c, void *ctx),
                        void *ctx)
{
	struct session_service *sessions = g->config.sessions;
	struct session *session;
	struct run *run;
	bool more = true;

	LIST_FOREACH (run, &sessions->config.runs->all, struct run, node) {
		const struct candidate c = of_run(g, run);

		if (more && c.box)
			more = visit(g, &c, ctx);
	}
	LIST_FOREACH (session, &sessions->all, struct session, node) {
		const struct candidate c = of_session(g, session);

		if (more && c.box)
			more = visit(g, &c, ctx);
	}
}

/* Return: false: enough for this turn of the loop. */
static bool read_box(struct memory_guard *g, const struct candidate *c, void *ctx)
{
	size_t *left = ctx;
	struct box_counters now;

	if (c->sample->round == g->round)
		return true;
	if (*left == 0)
		return false;
	(*left)--;
	box_counters(c->box, COUNTERS_FOR_MEMORY, &now);
	c->sample->round = g->round;
	c->sample->bytes = now.memory_bytes == COUNTER_UNKNOWN ? 0 : now.memory_bytes;
	if (now.cache_bytes != COUNTER_UNKNOWN)
		c->sample->bytes -=
			now.cache_bytes < c->sample->bytes ? now.cache_bytes : c->sample->bytes;
	return true;
}

struct sums {
	size_t tenants;
	uint64_t bytes;
};

static bool add_box(struct memory_guard *g, const struct candidate *c, void *ctx)
{
	struct sums *sums = ctx;

	if (c->sample->round != g->round)
		return true; /* it began after it would have been read */
	if (c->tenant->seen_round != g->round) {
		c->tenant->seen_round = g->round;
		c->tenant->seen_bytes = 0;
		sums->tenants++;
	}
	c->tenant->seen_bytes += c->sample->bytes;
	sums->bytes += c->sample->bytes;
	return true;
}

/* The tenant that uses most is furthest over the share, which is the same for all. */
static bool choose_box(struct memory_guard *g, const struct candidate *c, void *ctx)
{
	struct candidate *best = ctx;
	uint64_t used = c->tenant->seen_bytes;
	uint64_t most = best->box ? best->tenant->seen_bytes : 0;

	if (c->sample->round == g->round && c->sample->bytes > 0 &&
	    (used > most ||
	     (best->box && c->tenant == best->tenant && c->sample->bytes > best->sample->bytes)))
		*best = *c;
	return true;
}

static uint64_t share_of(const struct memory_guard *g, const struct sums *sums, uint64_t available)
{
	uint64_t whole = sums->bytes + available;
	uint64_t share = whole > g->config.low_bytes && sums->tenants > 0
	                         ? (whole - g->config.low_bytes) / sums->tenants
	                         : 0;

	return share > MEMORY_GUARD_SHARE_MIN ? share : MEMORY_GUARD_SHARE_MIN;
}

static void end_box(struct memory_guard *g, const struct candidate *c)
{
	struct error err = {0};
	struct run *run;

	metrics_count_for(g->config.metrics, METRIC_MEMORY_ENDS,
	                  METRIC_LABELS(c->run ? "execution" : "session"), 1);
	if (c->run) {
		run_end_for_memory(c->run);
		return;
	}
	(void)error_set(&err, ERR_BUSY, 0, OUTCOME_HOST_MEMORY_REASON);
	if (c->session->current && c->session->current->box == c->box &&
	    c->session->current->state < RUN_GATHERING)
		c->session->current->evidence.host_memory = true;
	LIST_FOREACH (run, &c->session->beside, struct run, queue_node)
		run->evidence.host_memory |= run->state < RUN_GATHERING;
	session_box_lost(c->session, &err);
}

static void end_largest(struct memory_guard *g, uint64_t available)
{
	struct sums sums = {0};
	struct candidate best = {0};
	uint64_t share;

	visit_boxes(g, add_box, &sums);
	visit_boxes(g, choose_box, &best);
	share = share_of(g, &sums, available);
	if (!best.box || best.tenant->seen_bytes <= share)
		return;
	log_warn("%llu MiB of memory are available: ending box %s of tenant '%s', which uses %llu "
	         "MiB; the tenant uses %llu, its share is %llu",
	         (unsigned long long)(available / MIB), box_id(best.box), best.tenant->name,
	         (unsigned long long)(best.sample->bytes / MIB),
	         (unsigned long long)(best.tenant->seen_bytes / MIB),
	         (unsigned long long)(share / MIB));
	end_box(g, &best);
}

/* Return: when to look again. */
static uint64_t look(struct memory_guard *g)
{
	uint64_t low = g->config.low_bytes;
	uint64_t available = UINT64_MAX;
	size_t left = BATCH;

	if (g->config.sessions->scheduler->boxes > 0)
		available = g->config.measure();
	if (available >= low) {
		g->reading = false;
		return available / NEAR >= low ? CALM_US : NEAR_US;
	}
	g->round += !g->reading;
	g->reading = true;
	visit_boxes(g, read_box, &left);
	if (left == 0)
		return BATCH_US;
	g->reading = false;
	end_largest(g, available);
	return NEAR_US;
}

void memory_guard_check(struct memory_guard *g)
{
	timer_start(g->timer, look(g));
}

static void on_timer(void *ctx)
{
	memory_guard_check(ctx);
}

struct memory_guard *memory_guard_new(const struct memory_guard_config *config)
{
	struct memory_guard *g = NEW(struct memory_guard);

	g->config = *config;
	g->timer = timer_new(config->loop, on_timer, g);
	timer_start(g->timer, CALM_US);
	return g;
}

void memory_guard_free(struct memory_guard *g)
{
	if (!g)
		return;
	timer_free(g->timer);
	free(g);
}
