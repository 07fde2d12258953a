/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: installs packages into a session that lives. Its box cannot get another mount, so they are
 * installed in a box of their own, as for a layer, and what that leaves is unpacked into the
 * session's workspace, where the user's own packages are.
 *
 * On the loop only.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>

struct op_session_install;
struct principal;
struct router;

/* Borrowed for the call. */
struct op_session_packages {
	const struct principal *who;
	const char *request_id;
	const char *session_id, *language;
	char *const *packages; /* may be NULL */
	const char *lock;      /* text of a lock file, instead; may be NULL */
};

/* From the loop. Exactly one of on_done and on_failed ends it. */
struct op_session_install_events {
	void *ctx;
	void (*on_output)(void *ctx, const char *data, size_t len); /* may be NULL */
	/* @lock: what was installed. @folder: where, in the workspace. */
	void (*on_done)(void *ctx, const char *lock, const char *folder);
	void (*on_failed)(void *ctx, const struct error *err, const char *log);
};

/**
 * op_session_install - Return: -1: ERR_INVALID with the field, ERR_CONFLICT in a paused session,
 * ERR_DENIED, ERR_BUSY.
 */
int op_session_install(struct router *r, const struct op_session_packages *wanted,
                       const struct op_session_install_events *events,
                       struct op_session_install **ret_install, struct error *err) attr_must_check;
/** op_session_install_cancel - no event follows. */
void op_session_install_cancel(struct op_session_install *op);
