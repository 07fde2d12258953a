/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: files of sessions for tests of the API's handlers: there are none. */

#include "core/session/session.h"
#include "core/session/session_files.h"

int file_open(struct session *session, const struct box_file_request *request,
              const struct box_file_events *events, struct file_op **ret_op, struct error *err)
{
	(void)session;
	(void)request;
	(void)events;
	(void)ret_op;
	return error_set(err, ERR_CONFLICT, 0, "a session of a test has no files");
}

size_t file_write(struct file_op *op, const char *data, size_t len)
{
	(void)op;
	(void)data;
	return len;
}

void file_end(struct file_op *op)
{
	(void)op;
}

void file_grant(struct file_op *op, size_t bytes)
{
	(void)op;
	(void)bytes;
}

void file_cancel(struct file_op *op)
{
	(void)op;
}

/* Nor does anybody watch them. */
void session_service_watch(struct session_service *s, const struct session_watcher *watcher)
{
	(void)s;
	(void)watcher;
}
