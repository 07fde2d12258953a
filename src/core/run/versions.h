/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: versions of the host's toolchains. A toolchain is a program of the host that the daemon does
 * not run itself: version_command of each installed language runs in a box, one after another, at
 * the first request for it. The answers are kept; what a program prints is cut to a version.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

struct run_service;
struct runner;
struct versions;
struct versions_wait;

typedef void versions_fn(void *ctx);

void versions_free(struct versions *v);
struct versions *versions_new(struct run_service *s) attr_owned(versions_free);
/** versions_want - call @fn from the loop once they are known, or cannot be found out. Return: to
 * cancel with; NULL: they are known already, and @fn is not called. */
struct versions_wait *versions_want(struct versions *v, versions_fn *fn, void *ctx);
void versions_cancel(struct versions_wait *wait);
/** versions_of - "3.11.2"; NULL: not known. */
const char *versions_of(const struct versions *v, const struct runner *runner);

#define VERSION_LEN 32
/** version_find - the first word with digits and a dot in @text. Return: whether there is one. */
bool version_find(const char *text, size_t len, char ret_version[VERSION_LEN]);
