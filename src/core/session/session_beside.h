/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: runs beside the session's queue, for this folder. */

#include "core/session/session_internal.h"

#define SESSION_BESIDE_MAX 16

/* Also of runs of the queue. */
extern const struct run_control session_run_control;

/** session_beside_check - may @request run there? */
int session_beside_check(const struct session *session, const struct run_request *request,
                         struct error *err) attr_must_check;
/** session_beside_others - runs in the same box as @run, the queue's included. Return: how many; at
 * most @max, which is not 0. */
size_t session_beside_others(const struct run *run, struct run **ret_runs, size_t max);
/** session_beside_left - of the session's lifetime, which bounds its deadline. */
uint64_t session_beside_left(const struct session *session);
/** session_beside_add - @run, which has its request, instead of queueing it. */
void session_beside_add(struct session *session, struct run *run);
void session_beside_remove(struct run *run);
/** session_beside_pump - start those that may. */
void session_beside_pump(struct session *session);
/** session_beside_with - the one with this id in the box; NULL: none. */
struct run *session_beside_with(const struct session *session, uint32_t id);
/** session_beside_labelled - by the id of its record; NULL: none. */
struct run *session_beside_labelled(const struct session *session, const char *id);
/**
 * session_beside_ids - for a loop that does something with each: that may end any of them, and the
 * session. Return: ids of their records, owned.
 */
char **session_beside_ids(const struct session *session);
bool session_beside_is_stopping(const struct session *session);
/** session_beside_freeze - their clocks stop. */
void session_beside_freeze(struct session *session);
void session_beside_thaw(struct session *session, uint64_t paused_us);
/** session_beside_stop_due - stop those that were cancelled while the box was frozen. */
void session_beside_stop_due(struct session *session);
/** session_beside_may_move - has none begun in the box? */
bool session_beside_may_move(const struct session *session);
/** session_beside_move - hand them to the session's new box. */
void session_beside_move(struct session *session);
/** session_beside_stop_clocks - the daemon exits. */
void session_beside_stop_clocks(struct session *session);
/** session_beside_cancel - all of them. */
void session_beside_cancel(struct session *session);
