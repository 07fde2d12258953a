/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: runs a program for a caller; the only place in api/ that starts one: once in a new box, or
 * in a session. The caller watches the record with run_watch (core/run). A one-shot run ends with
 * its watch; a session's goes on. run_reply.h answers HTTP requests.
 *
 * On the loop only. Nothing here knows HTTP.
 */

#include "base/attr.h"
#include "base/error.h"

struct principal;
struct router;
struct run_record;
struct run_request;
struct session;

/* Borrowed for the call. */
struct op_run_start {
	struct session *session; /* NULL: a new box */
	const struct run_request *request;
	const struct principal *who;
	const char *request_id; /* for logs and audit */
};

/**
 * op_run_start - Return: 0; -1 with *err: nothing started. A program without a session must be
 * watched before the loop goes on.
 */
int op_run_start(struct router *r, const struct op_run_start *start, struct run_record **ret_record,
                 struct error *err) attr_must_check;
