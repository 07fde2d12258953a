/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a session's log: the latest output of its executions. */

#include "base/buf.h"
#include <stdint.h>

struct run_records;
struct session_info;

#define SESSION_LOG_BYTES (1u << 20)
#define SESSION_LOG_ROOM  (8 * SESSION_LOG_BYTES) /* of the buffer while it is built */

/** session_log_tail - the last @lines lines of executions created since @since_ms (wall clock). */
void session_log_tail(struct run_records *all, const struct session_info *info, uint64_t since_ms,
                      uint64_t lines, struct buf *ret_log);
