/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: pause and resume, for this folder. See session_pause.c. */

#include "core/session/session.h"

struct error;
struct run;

/** session_run_inside - the current run; while reattaching, the one running according to the store.
 * NULL: none. */
struct run *session_run_inside(const struct session *session);
/** session_resumed - the run of a paused session has a place again. */
void session_resumed(struct session *session);

/** session_on_frozen - event of the box: the latest pause or resume is done. */
void session_on_frozen(void *ctx);
/** session_when_settled - call @fn once when the latest pause or resume is done and on disk. Only
 * while session.settling. */
void session_when_settled(struct session *session, session_kept_fn *fn, void *ctx);
/** session_unsettle - nothing is to be frozen any more: all waiters get @err. */
void session_unsettle(struct session *session, const struct error *err);
