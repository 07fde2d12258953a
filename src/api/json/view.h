/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions and executions as JSON. Each object has the fields of both forms that the control
 * plane's clients know (id and session_id, resources and resource_limit ...), so that none of them
 * has to be told apart. The result inside an execution is reply.h's. All returned objects are
 * owned.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include <jansson.h>

struct runners;
struct template;
struct templates;

json_t *view_moment(uint64_t real_ms) attr_must_check;
json_t *view_variables(char *const *env) attr_must_check;
json_t *view_template(const struct templates *all, const struct template *t,
                      const struct runners *runners) attr_must_check;
json_t *view_session(const struct session *session) attr_must_check;
json_t *view_session_stats(struct session *session) attr_must_check;
/** view_execution_status_name - "pending", "running", or how it ended. */
const char *view_execution_status_name(const struct run_record_info *info);
/** view_execution_ticket - the answer to who does not wait. */
json_t *view_execution_ticket(const struct run_record *e) attr_must_check;
/** view_execution_status - where it is. */
json_t *view_execution_status(const struct run_record *e) attr_must_check;
/**
 * view_add_execution - everything, as text: the result (empty so far while it runs) and what was
 * asked for. Return: 0 or -1: no room.
 */
int view_add_execution(struct buf *b, const struct run_record *e) attr_must_check;
/** view_execution_brief - the same without output, code and what the runner reported, for lists. */
json_t *view_execution_brief(const struct run_record *e) attr_must_check;
