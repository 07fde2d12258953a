/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: sessions whose box an earlier daemon made. Internal to this folder. */

#include "core/session/session_internal.h"

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
