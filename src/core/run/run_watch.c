/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_record_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "core/run/run_row.h"
#include "io/loop.h"

/*
 * Theory of operation. Output is kept once per stream; an event is a range of it. Consecutive
 * pieces form one event until it is delivered: then it is sealed, because its number stands for
 * these bytes. So a watcher that returns with its last event number misses nothing and gets nothing
 * twice.
 *
 * The program chooses how many pieces it writes, but its events must not cost more than its output:
 * beyond PIECES_FINE, delivery is paced and pieces join the open event of their stream even across
 * the other stream (order across streams is then exact to PACE_US only).
 *
 * Records of boxes that outlive the daemon are exact: the agent repeats its pieces to the next
 * daemon, so they never join. The bound is one event per read of the agent.
 *
 * A terminal has no limit: its oldest events go, and numbers go on.
 *
 * The watcher of a one-shot run is called directly.
 */

#define PIECES_FINE 4096
#define PIECE_MAX   (64u * 1024)
/* Of a terminal, whose oldest pieces go. */
#define PIECE_SHOWN (16u * 1024)
#define PACE_US     (20 * USEC_PER_MS)

static void deliver(void *arg);

static void drop_watch(struct run_watch *w)
{
	list_remove(&w->node);
	free(w);
}

static void want_delivery(struct run_record *e)
{
	if (e->due || e->delivering || list_is_empty(&e->watches))
		return;
	e->due = true;
	if (e->pieces_count < PIECES_FINE) {
		loop_defer(e->all->loop, deliver, e);
		return;
	}
	if (!e->pace)
		e->pace = timer_new(e->all->loop, deliver, e);
	timer_start(e->pace, PACE_US);
}

void run_record_stop_delivery(struct run_record *e)
{
	loop_cancel(e->all->loop, deliver, e);
	timer_free(TAKE_PTR(e->pace));
}

static uint64_t last_number(const struct run_record *e)
{
	return e->dropped + e->pieces_count;
}

static struct run_piece *piece_at(const struct run_record *e, uint64_t number)
{
	return &e->pieces[number - 1 - e->dropped];
}

static struct run_piece *add_piece(struct run_record *e, enum run_event_kind kind)
{
	struct run_piece *piece;

	if (e->pieces_count == e->pieces_cap) {
		e->pieces_cap = e->pieces_cap ? 2 * e->pieces_cap : 8;
		e->pieces = xrealloc_array(e->pieces, e->pieces_cap, sizeof(*e->pieces));
	}
	piece = &e->pieces[e->pieces_count++];
	*piece = (struct run_piece){.kind = (uint8_t)kind};
	return piece;
}

void run_record_add_piece(struct run_record *e, enum run_event_kind kind, uint32_t at, uint32_t len)
{
	struct run_piece *piece = add_piece(e, kind);

	piece->at = at;
	piece->len = len;
	e->sealed = last_number(e);
}

/* Drop the watch before delivering END: the callback may free what holds it. */
static void call_only_watch(struct run_record *e, const struct run_event *event)
{
	struct run_watch *w = LIST_FIRST(&e->watches, struct run_watch, node);
	struct run_watch called;

	if (!w)
		return;
	called = *w;
	if (event->kind == RUN_EVENT_END)
		drop_watch(w);
	called.fn(called.ctx, e, event);
}

void run_record_add_event(struct run_record *e, enum run_event_kind kind)
{
	if (!e->all) {
		call_only_watch(e, &(struct run_event){.kind = kind});
		return;
	}
	(void)add_piece(e, kind);
	want_delivery(e);
}

/* Whether output may join event number @last. */
static bool is_open(const struct run_record *e, uint64_t last)
{
	return !e->exact && last > e->sealed && last > e->dropped &&
	       (last == last_number(e) || e->pieces_count >= PIECES_FINE);
}

/* Whole events, so that numbers keep their bytes. Not often: each time as much as is kept. */
static void drop_oldest(struct run_record *e, struct buf *output, size_t least)
{
	size_t most = output->len - least, count = 0;
	uint32_t bytes = 0;

	while (count < e->pieces_count &&
	       e->pieces[count].at + (size_t)e->pieces[count].len <= most) {
		bytes = e->pieces[count].at + e->pieces[count].len;
		count++;
	}
	if (e->delivering || count == 0)
		return;
	buf_consume(output, bytes);
	e->pieces_count -= count;
	memmove(e->pieces, e->pieces + count, e->pieces_count * sizeof(*e->pieces));
	for (size_t i = 0; i < e->pieces_count; i++)
		e->pieces[i].at -= bytes;
	e->dropped += count;
}

void run_record_add_output(struct run_record *e, enum output_stream stream, const char *data,
                           size_t len)
{
	enum run_event_kind kind = stream == OUTPUT_STDOUT ? RUN_EVENT_STDOUT : RUN_EVENT_STDERR;
	const size_t most = e->rolling > 0 ? PIECE_SHOWN : PIECE_MAX;
	struct buf *output = &e->output[stream];
	struct run_piece *piece;

	if (e->state == RUN_RECORD_ENDED)
		return;
	if (!e->all) {
		if (buf_add(output, data, len) == 0)
			call_only_watch(e, &(struct run_event){0, kind, data, len});
		return;
	}
	while (len > 0) {
		size_t part = len < most ? len : most;
		size_t at = output->len;
		uint64_t last = e->last[stream];
		bool open = is_open(e, last);

		/* The run limits its output; this is the last defence. */
		if (buf_add(output, data, part) < 0)
			return;
		if (open && part <= most - piece_at(e, last)->len) {
			piece = piece_at(e, last);
		} else {
			piece = add_piece(e, kind);
			piece->at = (uint32_t)at;
			e->last[stream] = last_number(e);
		}
		piece->len += (uint32_t)part;
		data += part;
		len -= part;
	}
	if (e->rolling > 0 && output->len > 2 * e->rolling)
		drop_oldest(e, output, e->rolling);
	want_delivery(e);
}

size_t run_record_held(const struct run_record *e)
{
	return e->output[OUTPUT_STDOUT].cap + e->output[OUTPUT_STDERR].cap +
	       e->pieces_cap * sizeof(*e->pieces);
}

void run_record_keep_latest(struct run_record *e, size_t bytes)
{
	struct buf *output = &e->output[OUTPUT_STDOUT];

	if (output->len <= 2 * bytes)
		return;
	drop_oldest(e, output, bytes);
	buf_trim(output);
}

uint64_t run_record_events(const struct run_record *e)
{
	return last_number(e);
}

static struct run_event event_at(const struct run_record *e, uint64_t number)
{
	const struct run_piece *piece = piece_at(e, number);
	struct run_event event = {.number = number, .kind = (enum run_event_kind)piece->kind};
	bool is_out = event.kind == RUN_EVENT_STDOUT;
	const struct buf *bytes = is_out ? &e->output[OUTPUT_STDOUT] : &e->output[OUTPUT_STDERR];

	if (!is_out && event.kind != RUN_EVENT_STDERR)
		return event;
	if (e->has_outcome)
		bytes = is_out ? &e->outcome.out : &e->outcome.err;
	event.data = bytes->data + piece->at;
	event.len = piece->len;
	return event;
}

static void deliver(void *arg)
{
	struct run_record *e = arg;
	struct run_watch *w;
	bool behind = false;

	e->due = false;
	e->delivering = true;
	e->sealed = last_number(e);
	/* A callback may end any watch: they stay listed until the sweep. */
	LIST_FOREACH (w, &e->watches, struct run_watch, node) {
		if (w->next <= e->dropped)
			w->next = e->dropped + 1;
		while (w->fn && w->next <= e->sealed) {
			struct run_event event = event_at(e, w->next++);

			w->fn(w->ctx, e, &event);
		}
	}
	e->delivering = false;
	LIST_FOREACH (w, &e->watches, struct run_watch, node) {
		bool has_all = e->state == RUN_RECORD_ENDED && w->next > last_number(e);

		if (!w->fn || has_all)
			drop_watch(w);
		else
			behind |= w->next <= last_number(e);
	}
	if (behind)
		want_delivery(e);
	if (!e->owner && list_is_empty(&e->watches) && !run_row_flush(e))
		run_record_free(e);
}

struct run_watch *run_watch(struct run_record *e, uint64_t after, run_event_fn *fn, void *ctx)
{
	struct run_watch *w = NEW(struct run_watch);

	w->execution = e;
	w->fn = fn;
	w->ctx = ctx;
	list_append(&e->watches, &w->node);
	if (!e->all)
		return w;
	/* A future number: an ended record delivers at least END. */
	w->next = after < last_number(e) ? after + 1 : last_number(e) + 1;
	if (e->state == RUN_RECORD_ENDED && w->next > last_number(e))
		w->next = last_number(e);
	if (w->next <= last_number(e))
		want_delivery(e);
	return w;
}

void run_unwatch(struct run_watch *w)
{
	struct run_record *e = w->execution;

	w->fn = NULL;
	if (e->delivering)
		return;
	drop_watch(w);
	if (!e->all)
		e->on_unwatched(e->control_ctx);
	else if (!e->owner && list_is_empty(&e->watches) && !run_row_flush(e))
		run_record_free(e);
}

void run_watch_cancel(struct run_watch *w)
{
	struct error ignored = {0}; /* it has ended */

	(void)!run_record_cancel(w->execution, &ignored);
	run_unwatch(w);
}
