/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the agent of a kept box sent about executions and runners: the frames, in order, until
 * the daemon has acknowledged their end. A new daemon gets all of it again.
 *
 * Frames are copied from the channel's queue (journal_note). During a replay new ones queue behind
 * the old.
 *
 * Bounded by what an execution was granted (output, report), and by WIRE_KEPT_MAX of them.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "guest/channel.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>

#define JOURNAL_MAX_BYTES (1024u * 1024 * 1024)

struct journal_entry {
	uint32_t id;
	uint32_t runner; /* of a RUN */
	bool begun;      /* EXEC or RUN received */
	bool keep;
	bool ended;    /* DONE or FAILED sent */
	bool fleeting; /* its OUTPUT is not kept */
	char label[WIRE_LABEL_MAX + 1];
};

struct journal {
	bool on;           /* this box outlives its daemon */
	bool replaying;    /* @cursor is before the end of @frames */
	size_t cursor;     /* bytes sent again */
	uint32_t last_id;  /* largest id in a host's frame */
	struct buf frames; /* owned */
	size_t count;
	struct journal_entry entries[WIRE_KEPT_MAX];
};

void journal_init(struct journal *j, bool on);
void journal_done(struct journal *j);
/** journal_label - keep @id. Return: 0, or -EPROTO. */
int journal_label(struct journal *j, uint32_t id, const struct wire_bytes *text) attr_must_check;
/** journal_begin - on EXEC or RUN. Return: 0, or -EPROTO: no label, or already begun. */
int journal_begin(struct journal *j, uint32_t id, uint32_t runner, bool keep) attr_must_check;
/** journal_skip_output - of @id, a terminal: it has no end, and what it showed is past. */
void journal_skip_output(struct journal *j, uint32_t id);
/** journal_ack - drop it. Return: 0, or -EPROTO: not ended. */
int journal_ack(struct journal *j, uint32_t id) attr_must_check;
/** journal_detach - the host is gone: drop what has not begun. */
void journal_detach(struct journal *j);
/** journal_note - copy what is new in @ch. Return: 0, or a negative errno: no room. */
int journal_note(struct journal *j, struct channel *ch) attr_must_check;
void journal_replay(struct journal *j);
int journal_pump(struct journal *j, struct channel *ch) attr_must_check;
