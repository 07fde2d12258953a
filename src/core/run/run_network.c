/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_internal.h"

#include "base/attr.h"
#include "core/config/config.h"
#include "core/run/remedy.h"

/*
 * Theory of operation. Proxy, gateway and bridge know the box of a connection, not the program. So
 * whenever a run enters or leaves a box, what they have refused meanwhile is handed out: to the run
 * that was there alone or, marked as shared, to each that was. What was refused while none was
 * there (a process may outlive its run) is the next one's, marked too.
 *
 * Of a refusal in several results the metrics count one. Traffic is measured for each run from its
 * start to its end; the metrics count what is new in the box.
 */

#define RUNS_MAX 32
#define BATCH    8

struct sharers {
	struct run *runs[RUNS_MAX];
	size_t count;
	bool shared;
};

static struct remedy_scope scope_of(const struct run *r)
{
	return (struct remedy_scope){
		.decision = &r->decision,
		.spec = box_applied(r->box),
		.in_session = r->on_ended,
		.ranges = r->service->config.config->bridge_allow,
	};
}

static struct denial *add_network(struct run *r, const struct box_denial *d, bool shared)
{
	const struct remedy_scope scope = scope_of(r);
	bool by_proxy = d->by == BOX_REFUSED_BY_PROXY;
	struct denial *row = by_proxy ? outcome_add_network(&r->outcome, d, shared)
	                              : outcome_add_bridge(&r->outcome, d,
	                                                   remedy_bridge_rule(d, &scope), shared);

	if (row && !row->remedy)
		row->remedy =
			by_proxy ? remedy_for_network(d, &scope) : remedy_for_bridge(d, &scope);
	return row;
}

static void note(struct denial *row, uint64_t count, size_t index)
{
	if (index > 0)
		row->repeated += count;
}

static void give_network(const struct sharers *to, const struct box_denial *d)
{
	for (size_t i = 0; i < to->count; i++) {
		struct denial *row = add_network(to->runs[i], d, to->shared);

		if (row)
			note(row, d->count, i);
	}
}

static void give_tool(const struct sharers *to, const struct box_tool_denial *d)
{
	for (size_t i = 0; i < to->count; i++) {
		const struct remedy_scope scope = scope_of(to->runs[i]);
		struct denial *row = outcome_add_tool(&to->runs[i]->outcome, d, to->shared);

		if (row && !row->remedy)
			row->remedy = remedy_for_tool(d, &scope);
		if (row)
			note(row, d->count, i);
	}
}

static void hand_out(struct box *box, const struct sharers *to)
{
	struct box_tool_denial calls[BATCH];
	struct box_denial denials[BATCH];
	size_t count;

	do {
		count = box_denials(box, denials, ARRAY_SIZE(denials));
		for (size_t i = 0; i < count; i++)
			give_network(to, &denials[i]);
	} while (count == ARRAY_SIZE(denials));
	do {
		count = box_tool_denials(box, calls, ARRAY_SIZE(calls));
		for (size_t i = 0; i < count; i++)
			give_tool(to, &calls[i]);
	} while (count == ARRAY_SIZE(calls));
}

static size_t others_of(struct run *r, struct run **ret_runs, size_t max)
{
	return r->place && r->place->others ? r->place->others(r, ret_runs, max) : 0;
}

void run_network_enter(struct run *r)
{
	struct sharers before = {0};

	(void)box_network_usage(r->box, &r->net_before);
	r->net_entered = box_applied(r->box)->network;
	before.count = others_of(r, before.runs, ARRAY_SIZE(before.runs));
	before.shared = before.count != 1;
	for (size_t i = 0; i < before.count; i++)
		before.runs[i]->outcome.net_shared = r->outcome.net_shared = true;
	if (before.count == 0)
		before.runs[before.count++] = r;
	hand_out(r->box, &before);
}

static void take_usage(struct run *r)
{
	const struct box_network_usage *before = &r->net_before;
	struct outcome *o = &r->outcome;
	struct box_network_usage now;

	if (!box_network_usage(r->box, &now))
		return;
	o->net_sent = now.sent - before->sent;
	o->net_received = now.received - before->received;
	o->net_connections = now.connections == COUNTER_UNKNOWN
	                             ? COUNTER_UNKNOWN
	                             : now.connections - before->connections;
	box_network_growth(r->box, &now, &o->net_new);
}

void run_network_leave(struct run *r)
{
	struct sharers all = {.runs = {r}, .count = 1};

	/* First: the proxy's report follows the last denials. */
	take_usage(r);
	all.count += others_of(r, all.runs + 1, ARRAY_SIZE(all.runs) - 1);
	all.shared = all.count > 1;
	hand_out(r->box, &all);
}
