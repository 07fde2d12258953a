/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_internal.h"

#include <signal.h>

#include "base/size.h"
#include "core/config/config.h"
#include "core/run/run_record_internal.h"

/*
 * What differs for runs beside a session's queue, and on a terminal.
 *
 * They take no place in the scheduler, so a tenant may have thousands, and each keeps its output
 * while it runs. All of it is bounded, in total and per tenant. Beyond that a terminal keeps the
 * latest few lines, and of another run the rest is dropped; a little is kept of each.
 */

#define SHOWN_LEAST (16 * KIB)

static bool is_full(const struct run *r)
{
	uint64_t most = r->service->config.config->background_output_bytes;

	/* Half of it is for others. */
	return r->service->shown_bytes > most || (r->tenant && r->tenant->shown_bytes > most / 2);
}

static void set_shown(struct run *r, size_t bytes)
{
	r->service->shown_bytes += bytes - r->shown_bytes;
	if (r->tenant)
		r->tenant->shown_bytes += bytes - r->shown_bytes;
	r->shown_bytes = bytes;
}

size_t run_beside_room(struct run *r, enum output_stream stream, size_t len)
{
	size_t has = run_record_printed(r->record, stream)->len;

	if (!r->beside || (!r->is_cut[stream] && (has + len <= SHOWN_LEAST || !is_full(r))))
		return len;
	len = r->is_cut[stream] || has > SHOWN_LEAST ? 0 : SHOWN_LEAST - has;
	r->is_cut[stream] = true;
	return len;
}

void run_beside_count(struct run *r)
{
	if (!r->beside)
		return;
	set_shown(r, run_record_held(r->record));
	if (!r->terminal || !is_full(r))
		return;
	run_record_keep_latest(r->record, SHOWN_LEAST);
	set_shown(r, run_record_held(r->record));
}

void run_beside_forget(struct run *r)
{
	if (r->service)
		set_shown(r, 0);
}

void run_allow_output(struct run *r)
{
	if (r->state >= RUN_STARTING && r->state <= RUN_KILLING && r->owed > 0)
		box_take_output(r->box, r->id, r->owed);
	r->owed = 0;
}

/* The link bounds what is on its way; the record keeps the end of it. */
void run_add_shown(struct run *r, const char *data, size_t len)
{
	r->outcome.stdout_bytes += len;
	r->owed += len;
	run_record_add_output(r->record, OUTPUT_STDOUT, data, len);
	run_beside_count(r);
	if (!run_record_is_stopped(r->record))
		run_allow_output(r);
}

size_t run_unread(const struct run *r)
{
	return r->box && r->id ? box_stdin_waiting(r->box, r->id) : 0;
}

int run_resize(struct run *r, uint16_t rows, uint16_t cols, struct error *err)
{
	if (!r->terminal)
		return error_set(err, ERR_CONFLICT, 0,
		                 "execution %s is on no terminal: start it with 'tty'",
		                 r->record->id);
	if (r->request && r->state <= RUN_STARTING) {
		r->request->tty_rows = rows;
		r->request->tty_cols = cols;
	}
	if (r->state < RUN_STARTING)
		return 0;
	return box_resize(r->box, r->id, rows, cols, err);
}

/* Beside others, what the box counted may be theirs: the kernel's figures of the process stay. */
void run_keep_own(const struct run *r, struct box_counters *c)
{
	bool killed = r->evidence.ended && r->evidence.signalled && r->evidence.status == SIGKILL;

	c->cpu_us = c->memory_peak_bytes = c->pids_peak = c->pids_denied = COUNTER_UNKNOWN;
	if (!killed)
		c->oom_kills = 0;
}
