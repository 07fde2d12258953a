/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: packages that a caller wants: a list of names, or the text of a lock file. The key stands
 * for all that decides what is installed: manager, names or lock, registry, the root and its
 * program.
 */

#include "base/attr.h"
#include "base/error.h"

struct manager;
struct template;

#define WANTED_MAX      256
#define WANTED_LOCK_MAX (1024 * 1024)
#define WANTED_KEY_LEN  65 /* hex of SHA-256, and NUL */

struct wanted {
	const struct manager *manager;
	char **packages; /* owned; sorted, without duplicates; empty with a lock */
	char *lock;      /* owned; NULL: none */
	char *run;       /* owned; NULL: none */
	char key[WANTED_KEY_LEN];
};

/* Borrowed. */
struct wanted_source {
	const struct manager *manager;
	char *const *packages; /* may be NULL */
	const char *lock;      /* may be NULL */
	const char *run;       /* may be NULL */
	const char *registry;
	const struct template *template; /* whose root is used; NULL: the host's */
	const char *program;             /* of the language, on the host */
};

void wanted_done(struct wanted *w);
/** wanted_make - ERR_INVALID with the field packages[N] or lock. */
int wanted_make(const struct wanted_source *source, struct wanted *ret_wanted,
                struct error *err) attr_must_check;
