/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a new certificate and key for a running server. If a guard must open the files (tls_guard.h)
 * its answer arrives asynchronously: the loop never blocks on it.
 *
 *   tls_reload_ask   opens them; config.ready follows, synchronously without a guard
 *   tls_reload_run   reads what was opened, as a part of a reload
 */

#include "base/attr.h"
#include "base/error.h"
#include "daemon/tls_files.h"
#include <stdbool.h>

struct config;
struct http_server;
struct loop;
struct timer;
struct guard;
struct watch;

struct tls_reload {
	const struct config *config; /* all borrowed */
	struct guard *guard;         /* without a process: open the files here */
	struct http_server *http;
	struct loop *loop;
	void (*ready)(void *ctx);
	void *ctx;

	struct watch *watch; /* owned, like the timer; NULL: not asked yet */
	struct timer *timer;
	bool asking, again;       /* waiting for the guard; ask again after its answer */
	struct error failure;     /* of the last request */
	int fds[TLS_FILES_COUNT]; /* owned; opened files */
};

/** tls_reload_done - also for one that is all zero. */
void tls_reload_done(struct tls_reload *t);
void tls_reload_ask(struct tls_reload *t);
/** tls_reload_run - @ctx is a struct tls_reload whose ready was called. */
int tls_reload_run(void *ctx, struct error *err) attr_must_check;
