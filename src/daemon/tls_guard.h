/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: opens the files of tls.cert and tls.key for a daemon that gave up the right to do so itself,
 * so that a new certificate needs no restart. Started as root, the daemon leaves a child behind
 * that has nothing but the right to read, and the two names. It is asked by one byte, answers with
 * two descriptors, which it does not read, and ends with the daemon. An intruder in the daemon
 * gains nothing by it: the daemon has the key already.
 */

#include "base/attr.h"
#include "base/error.h"
#include "daemon/tls_files.h"
#include <sys/types.h>

struct tls_guard {
	pid_t pid; /* 0: none */
	int link;  /* owned; closing it is the order to end */
};

/** tls_guard_start - @config is used by the child. Forks: before any thread. */
int tls_guard_start(struct tls_guard *g, const struct config *config,
                    struct error *err) attr_must_check;
/* None of these waits: whoever asks watches the link. A guard that does not answer within
 * TLS_GUARD_TIMEOUT_MS is one that failed. */
#define TLS_GUARD_TIMEOUT_MS 5000
/** tls_guard_ask - for an answer, which is one message at the link. */
int tls_guard_ask(const struct tls_guard *g, struct error *err) attr_must_check;
/** tls_guard_take - the answer, as tls_files_open. Return: 0; 1: there is none yet; -1. */
int tls_guard_take(const struct tls_guard *g, int ret_fds[TLS_FILES_COUNT],
                   struct error *err) attr_must_check;
/** tls_guard_give_up - it was asked and is silent: nobody asks it any more. *err says so. */
void tls_guard_give_up(const struct tls_guard *g, struct error *err);
/** tls_guard_end - and wait for it. */
void tls_guard_end(struct tls_guard *g);
