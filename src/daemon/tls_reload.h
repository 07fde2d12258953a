/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a new certificate and key for a server that runs. Where a guard has to open the files
 * (tls_guard.h) its answer is waited for beside everything else: the loop never stands still for
 * it.
 *
 *   tls_reload_ask   opens them; config.ready follows, from inside where there is nobody to ask
 *   tls_reload_run   takes what was opened, as a part of a reload
 */

#include "base/attr.h"
#include "base/error.h"
#include "daemon/tls_files.h"
#include <stdbool.h>

struct config;
struct http_server;
struct loop;
struct timer;
struct tls_guard;
struct watch;

struct tls_reload {
	const struct config *config; /* borrowed, as all */
	struct tls_guard *guard;     /* without a process: the files are opened here */
	struct http_server *http;
	struct loop *loop;
	void (*ready)(void *ctx);
	void *ctx;

	struct watch *watch; /* owned, as the timer; NULL: nobody was asked yet */
	struct timer *timer;
	bool asking, again;       /* the guard; and once more when it has answered */
	struct error failure;     /* of the asking */
	int fds[TLS_FILES_COUNT]; /* owned; that were opened */
};

/** tls_reload_done - also of one that is all zero. */
void tls_reload_done(struct tls_reload *t);
void tls_reload_ask(struct tls_reload *t);
/** tls_reload_run - @ctx is a struct tls_reload, whose ready was called. */
int tls_reload_run(void *ctx, struct error *err) attr_must_check;
