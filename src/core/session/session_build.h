/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a session's new box, built when it is its tenant's turn; for this folder. */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>

struct session;

/** session_build_box - build it now, or in its turn. Counts it in session_service.boxes. */
int session_build_box(struct session *session, struct error *err) attr_must_check;
/** session_awaits_box - session_build_box was called, and it is not yet its turn. */
bool session_awaits_box(const struct session *session);
/** session_built - the box is ready or gone; idempotent. */
void session_built(struct session *session);
/** session_withdraw_box - if it waits for its turn, give that up. */
void session_withdraw_box(struct session *session);
/** session_destroy_box - or withdraw it. */
void session_destroy_box(struct session *session);
