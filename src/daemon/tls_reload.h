/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a new certificate and key for a running server. If a guard must open the files
 * (tls_guard.h), its answer arrives asynchronously: the loop never blocks.
 *
 *   tls_reload_ask   opens them; ready follows, synchronously without a guard
 *   tls_reload_run   reads them, as part of a reload
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

	struct watch *watch; /* owned, like the timer; NULL: not asked */
	struct timer *timer;
	bool asking, again;       /* awaiting the guard; ask again afterwards */
	struct error failure;     /* of the last request */
	int fds[TLS_FILES_COUNT]; /* owned */
};

/** tls_reload_done - also if zero. */
void tls_reload_done(struct tls_reload *t);
void tls_reload_ask(struct tls_reload *t);
/** tls_reload_run - @ctx is a struct tls_reload whose ready was called. */
int tls_reload_run(void *ctx, struct error *err) attr_must_check;
