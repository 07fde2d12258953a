/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: file operations in a session's workspace, as in driver.h. They do not wait for runs, count
 * as activity, and end with the session's box.
 *
 * An ephemeral session's first file operation makes a box, which the next run uses up.
 */

#include "base/error.h"
#include "driver/driver.h"

struct file_op;
struct session;

#define FILES_PER_SESSION 6 /* concurrent; the box allows a few more */
#define FILES_LIST_MAX    10000
#define FILES_LIST_BYTES  (1024 * 1024) /* names of a listing; truncated there */
#define FILES_TREE_MAX    100000
/* An operation without progress for this long fails. Clients have less, see lib/http. */
#define FILES_STALL_US (120 * 1000 * 1000ULL)

/**
 * file_open - as box_file_open; @request and @events are copied. ERR_CONFLICT if the session is
 * paused or over, ERR_BUSY if too many are open.
 */
int file_open(struct session *session, const struct box_file_request *request,
              const struct box_file_events *events, struct file_op **ret_op,
              struct error *err) attr_must_check;
size_t file_write(struct file_op *op, const char *data, size_t len);
void file_end(struct file_op *op);
void file_grant(struct file_op *op, size_t bytes);
void file_cancel(struct file_op *op);
