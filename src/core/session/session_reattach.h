/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: sessions whose box an earlier daemon made. Internal to this folder. */

#include "core/session/session_internal.h"

/*
 * What a kept box remembers of a run: its id, and the box's counters when it began. Text of at most
 * BOX_LABEL_MAX characters: "exec_20261115_ab12cd34 1f4 2dc6c0 0 -", in base 16, "-" if unknown. A
 * lying agent can only falsify the usage of its own runs.
 */
struct session_label {
	char id[BOX_LABEL_MAX + 1];
	uint64_t queue_us;          /* COUNTER_UNKNOWN */
	struct box_counters before; /* cpu_us, oom_kills, pids_denied */
};

/** session_label_make - the id alone if the rest does not fit. */
void session_label_make(const struct session_label *label, char ret_text[BOX_LABEL_MAX + 1]);
/** session_label_read - never fails: missing or bad numbers are unknown. */
void session_label_read(const char *text, struct session_label *ret_label);

/* Ends to acknowledge once on disk. */
struct session_ack {
	struct list node;        /* session.acks */
	struct session *session; /* NULL: gone */
	uint32_t ids[2];
};

/** session_ack_run - before @run's record ends: acknowledge it once on disk. */
void session_ack_run(struct run *run);
/** session_drop_acks - box or session is gone. */
void session_drop_acks(struct session *session);
int session_on_reattach(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant);
void session_on_reattached(void *ctx, uint32_t last_id);
void session_on_forgotten(void *ctx, uint32_t exec_id);
/** session_reattach_run - @run, already in the box, becomes current. */
void session_reattach_run(struct run *run);
/** session_reattach - to a restored session's box. Return: -1: the box is lost. */
int session_reattach(struct session *session, struct error *err) attr_must_check;
/** session_is_new - an earlier daemon's box that may never have been ready. */
bool session_is_new(const struct session *session);
/**
 * session_remake_box - its box is lost. Return: session_is_new: the box is being destroyed; call
 * session_remade when it is gone.
 */
bool session_remake_box(struct session *session);
/** session_remade - the old box is gone: continue in a new one, or fail. */
void session_remade(struct session *session);
