/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a daemon that outlives the command that starts it. */

#include "base/attr.h"
#include "base/error.h"

struct background_job {
	const char *const *argv; /* of milliboxd; argv[0] is its path */
	const char *log;         /* gets its standard output and error */
	int interrupt_fd;
};

/**
 * background_environment - ours without the keys of clients. @more: another variable, instead of
 * ours of that name; NULL: none. Return: owned list of borrowed text.
 */
char **background_environment(const char *more) attr_must_check;
/**
 * background_start - start a daemon in a session of its own, and wait until it serves, or a signal
 * arrives, which ends it. A daemon that does not start has its log copied to stderr. Return: 0, or
 * -1 (ERR_UNAVAILABLE; sys ECANCELED: a signal).
 */
int background_start(const struct background_job *job, struct error *err) attr_must_check;
