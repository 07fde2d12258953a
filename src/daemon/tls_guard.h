/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: opens tls.cert and tls.key for a daemon that dropped the right to do so, so that a new
 * certificate needs no restart. Started as root, the daemon leaves a child with only the right to
 * read, and the two names. A request is one byte; the answer is two descriptors, which the guard
 * does not read. It ends with the daemon. An intruder in the daemon gains nothing: it has the key
 * already.
 */

#include "daemon/guard.h"
#include "daemon/tls_files.h"

int tls_guard_start(struct guard *g, const struct config *config,
                    struct error *err) attr_must_check;
/* None of these blocks: the caller watches the link. A guard silent for TLS_GUARD_TIMEOUT_MS has
 * failed. */
#define TLS_GUARD_TIMEOUT_MS 5000
/** tls_guard_ask - the answer is one message on the link. */
int tls_guard_ask(const struct guard *g, struct error *err) attr_must_check;
/** tls_guard_take - the answer, like tls_files_open. Return: 0; 1: none yet; -1. */
int tls_guard_take(const struct guard *g, int ret_fds[TLS_FILES_COUNT],
                   struct error *err) attr_must_check;
/** tls_guard_give_up - no answer: never ask again; sets *err. */
void tls_guard_give_up(const struct guard *g, struct error *err);
