/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: sessions whose box an earlier daemon made. For the files of this folder. */

#include "core/session/session_internal.h"

/*
 * What a kept box remembers of a run for the next daemon: its id, and the counters of the box when
 * it began. As text of at most BOX_LABEL_MAX characters: "exec_20261115_ab12cd34 1f4 2dc6c0 0 -",
 * numbers in base 16, "-" if unknown. The agent may lie: only about the usage of its own runs.
 */
struct session_label {
	char id[BOX_LABEL_MAX + 1];
	uint64_t queue_us;          /* COUNTER_UNKNOWN: not known */
	struct box_counters before; /* of it cpu_us, oom_kills, pids_denied */
};

/** session_label_make - the id alone if the numbers do not fit. */
void session_label_make(const struct session_label *label, char ret_text[BOX_LABEL_MAX + 1]);
/** session_label_read - never fails: what is missing, or no number, is unknown. */
void session_label_read(const char *text, struct session_label *ret_label);

/* Ends to acknowledge to the box once they are on disk. */
struct session_ack {
	struct list node;        /* session.acks */
	struct session *session; /* NULL: gone */
	uint32_t ids[2];
};

/** session_ack_run - the record of @run is about to end: acknowledge that once it is on disk. */
void session_ack_run(struct run *run);
/** session_drop_acks - the box is gone, or the session. */
void session_drop_acks(struct session *session);
int session_on_reattach(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant);
void session_on_reattached(void *ctx, uint32_t last_id);
void session_on_forgotten(void *ctx, uint32_t exec_id);
/** session_reattach_run - @run, which is in the box, becomes current. */
void session_reattach_run(struct run *run);
/** session_reattach - to the box of a restored session. -1: it is lost. */
int session_reattach(struct session *session, struct error *err) attr_must_check;
/** session_is_new - its box is an earlier daemon's and may never have been ready. */
bool session_is_new(const struct session *session);
/**
 * session_remake_box - its box is lost. Return: whether session_is_new: then the box is being
 * destroyed; call session_remade when it is gone.
 */
bool session_remake_box(struct session *session);
/** session_remade - the old box is gone: the session goes on in a new one, or fails. */
void session_remade(struct session *session);
