/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: asks boxes which languages work. A toolchain is programs of a root that the daemon does not
 * run itself: a small program of each language (hello in its manifest) is compiled and run in a box
 * of its own, and the toolchain is asked for its version. The verdicts are in
 * core/template/toolchains.h.
 *
 * Only who asks causes it: lists of languages, and refused requests in the background. A request
 * for a language never waits. At most HOST_CHECKS boxes check the host's root at the same time, and
 * one all others, each for CHECK_MAX_US at most; they get their turn from the scheduler.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct language_checks;
struct language_wait;
struct run_service;
struct runner;
struct template;

typedef void language_wait_fn(void *ctx);

void language_checks_free(struct language_checks *all);
struct language_checks *language_checks_new(struct run_service *s) attr_owned(language_checks_free);
/** language_checks_stop - the daemon drains: end all checks. */
void language_checks_stop(struct language_checks *all);
/** language_checks_watch - call @fn when another set of languages works on the host. At most one;
 * NULL: none. */
void language_checks_watch(struct language_checks *all, language_wait_fn *fn, void *ctx);

/* What a list needs to know. */
struct language_query {
	struct template *template; /* NULL: the host's root */
	const char *engine;        /* NULL: the default */
	bool again;                /* also what is known */
	/* From when the first of its checks was due: then the answer is what is known. 0: nothing
	 * is checked. */
	uint64_t within_us;
};
/** language_checks_want - call @fn from the loop when all languages of the root were checked.
 * Return: to cancel with; NULL: there is nothing to wait for, and @fn is not called. */
struct language_wait *language_checks_want(struct language_checks *all,
                                           const struct language_query *query, language_wait_fn *fn,
                                           void *ctx);
void language_wait_cancel(struct language_wait *wait);
/* A list of languages waits so long for them, and a list of tools, whose schemas name them. */
#define LANGUAGE_LIST_US  (20 * 1000 * 1000ULL)
#define LANGUAGE_TOOLS_US (2 * 1000 * 1000ULL)

#define LANGUAGE_VERSION_LEN 32
/** language_version_find - the first word with digits and a dot in @text. Return: whether there is
 * one. */
bool language_version_find(const char *text, size_t len, char ret_version[LANGUAGE_VERSION_LEN]);
