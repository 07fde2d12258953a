/* SPDX-License-Identifier: Apache-2.0 */
#include "api/turns.h"

#include "api/pending.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/str.h"
#include "io/loop.h"

/* A tenant counts as active for this long after a request. */
#define ACTIVE_US (100 * USEC_PER_MS)

/* A tenant that had a request handled in this round; freed when a round begins in which none of its
 * requests waits. */
struct turn {
	struct list node;    /* turns.tenants */
	struct list waiting; /* struct waiting.node, oldest first */
	char *tenant;        /* owned */
};

struct waiting {
	struct pending pending;
	struct list node; /* turn.waiting */
};

struct turns {
	struct turns_config config;
	struct list tenants; /* struct turn.node */
	/* The tenant of the last request, and when another tenant last sent one. */
	char *latest; /* owned; NULL: none */
	uint64_t latest_us;
	uint64_t others_us; /* 0: never */
};

struct turns *turns_new(const struct turns_config *config)
{
	struct turns *t = NEW(struct turns);

	t->config = *config;
	list_init(&t->tenants);
	return t;
}

static void free_turn(struct turn *turn)
{
	list_remove(&turn->node);
	free(turn->tenant);
	free(turn);
}

static void on_round(void *arg);

void turns_free(struct turns *t)
{
	struct turn *turn;

	if (!t)
		return;
	if (!list_is_empty(&t->tenants))
		loop_cancel(t->config.loop, on_round, t);
	LIST_FOREACH (turn, &t->tenants, struct turn, node)
		free_turn(turn);
	free(t->latest);
	free(t);
}

static void on_left(struct pending *p)
{
	struct waiting *w = CONTAINER_OF(p, struct waiting, pending);

	list_remove(&w->node);
	free(w);
}

static void handle_first(struct turns *t, struct turn *turn)
{
	struct waiting *w = LIST_FIRST(&turn->waiting, struct waiting, node);
	struct http_request *req = pending_resume(&w->pending);

	list_remove(&w->node);
	free(w);
	t->config.handle(t->config.ctx, req);
}

static void on_round(void *arg)
{
	struct turns *t = arg;
	struct turn *turn;

	LIST_FOREACH (turn, &t->tenants, struct turn, node) {
		if (list_is_empty(&turn->waiting))
			free_turn(turn);
		else
			handle_first(t, turn);
	}
	if (!list_is_empty(&t->tenants))
		loop_defer(t->config.loop, on_round, t);
}

static struct turn *find_turn(const struct turns *t, const char *tenant)
{
	struct turn *turn;

	LIST_FOREACH (turn, &t->tenants, struct turn, node)
		if (str_equal(turn->tenant, tenant))
			return turn;
	return NULL;
}

static void add_turn(struct turns *t, const char *tenant)
{
	struct turn *turn = NEW(struct turn);

	turn->tenant = xstrdup(tenant);
	list_init(&turn->waiting);
	if (list_is_empty(&t->tenants))
		loop_defer(t->config.loop, on_round, t);
	list_append(&t->tenants, &turn->node);
}

/* Return: whether another tenant than @tenant is active. */
static bool note_tenant(struct turns *t, const char *tenant, uint64_t now_us)
{
	if (!t->latest || !str_equal(t->latest, tenant)) {
		t->others_us = t->latest ? t->latest_us : 0;
		free(t->latest);
		t->latest = xstrdup(tenant);
	}
	t->latest_us = now_us;
	return t->others_us > 0 && now_us < t->others_us + ACTIVE_US;
}

void turns_enter(struct turns *t, struct http_request *req, const char *tenant, uint64_t now_us)
{
	bool is_alone = !note_tenant(t, tenant, now_us);
	struct turn *turn = find_turn(t, tenant);
	struct waiting *w;

	/* Requests of a tenant keep their order. */
	if (!turn || (is_alone && list_is_empty(&turn->waiting))) {
		if (!is_alone)
			add_turn(t, tenant);
		t->config.handle(t->config.ctx, req);
		return;
	}
	w = NEW(struct waiting);
	list_append(&turn->waiting, &w->node);
	pending_wait(&w->pending, req, on_left);
}
