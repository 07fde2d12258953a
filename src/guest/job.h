/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what EXEC asks to execute: built before the fork, where allocating is safe; used after it,
 * as the payload.
 */

#include "base/attr.h"
#include "base/error.h"
#include "wire/msg.h"

struct job {
	char **argv; /* owned */
	char **env;  /* owned */
	char *cwd;   /* owned */
};

/** job_make - copies. job_done() must follow either way. */
int job_make(struct job *job, const struct msg_exec *msg, struct error *err) attr_must_check;
void job_done(struct job *job);
/** job_execute - in the child, a spawn_work_fn: returns only on failure. */
int job_execute(const void *arg, int status, struct error *err);
