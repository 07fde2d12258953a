/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: sessions whose box an earlier daemon made: session_resume.c. Between files of sessions. */

#include "core/session/session_internal.h"

/* What is acknowledged to the box when the record of its end is safe. */
struct session_ack {
	struct list node;        /* session.acks */
	struct session *session; /* NULL: gone */
	uint32_t ids[2];
};

/** session_job_ack - the record of @job has just ended, or is about to: tell the box in time. */
void session_job_ack(struct session_job *job);
/** session_drop_acks - nothing of the box can be told any more. */
void session_drop_acks(struct session *session);
int session_on_resume(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant);
void session_on_resumed(void *ctx, uint32_t last_id);
void session_on_forgotten(void *ctx, uint32_t exec_id);
/** session_kill_stranger - it had time to end. */
void session_kill_stranger(struct session *session);
/** session_job_resume - its turn, and it is in the box already. */
void session_job_resume(struct session_job *job);
/** session_adopt_box - of a session that was restored. *err: it is lost. */
int session_adopt_box(struct session *session, struct error *err) attr_must_check;
/** session_is_new - its box is an earlier daemon's, and is not known to have ever been ready. */
bool session_is_new(const struct session *session);
/**
 * session_remake_box - its box is lost. Return: whether it was one of session_is_new: it goes, and
 * then session_remade is to be called.
 */
bool session_remake_box(struct session *session);
/** session_remade - the old box is gone: the session goes on in another, or has failed for lack of
 * one. */
void session_remade(struct session *session);
