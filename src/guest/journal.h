/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the agent of a box that outlives its daemon said about executions and runners: the
 * frames themselves, in the order of saying, until the daemon has acknowledged their end. To a new
 * daemon all of it is said again, so that it comes to know the same events in the same order.
 *
 * Frames are taken from what waits in the channel (journal_note). In a replay those that are new
 * queue up behind the old ones: nothing overtakes.
 *
 * Bounded: by what was granted to an execution (output, report), and by WIRE_KEPT_MAX of them.
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
	bool begun;      /* EXEC or RUN came */
	bool keep;
	bool ended; /* DONE or FAILED was said */
	char label[WIRE_LABEL_MAX + 1];
};

struct journal {
	bool on;           /* this box outlives its daemon */
	bool replaying;    /* @cursor is behind @frames */
	size_t cursor;     /* what was said again */
	uint32_t last_id;  /* the largest of all frames of a host */
	struct buf frames; /* owned */
	size_t count;
	struct journal_entry entries[WIRE_KEPT_MAX];
};

void journal_init(struct journal *j, bool on);
void journal_done(struct journal *j);
/** journal_label - @id is to be kept. Return: 0, or -EPROTO. */
int journal_label(struct journal *j, uint32_t id, const struct wire_bytes *text) attr_must_check;
/** journal_begin - EXEC or RUN came. Return: 0, or -EPROTO: it had no label, or had begun. */
int journal_begin(struct journal *j, uint32_t id, uint32_t runner, bool keep) attr_must_check;
/** journal_ack - forget it. Return: 0, or -EPROTO: it has not ended. */
int journal_ack(struct journal *j, uint32_t id) attr_must_check;
/** journal_detach - the host is gone: forget what had not begun. */
void journal_detach(struct journal *j);
/** journal_note - keep what is new in @ch. Return: 0, or a negative errno: it cannot be kept. */
int journal_note(struct journal *j, struct channel *ch) attr_must_check;
/** journal_replay - say it all again, from now on. */
void journal_replay(struct journal *j);
/** journal_pump - as much of that as the channel takes. */
int journal_pump(struct journal *j, struct channel *ch) attr_must_check;
