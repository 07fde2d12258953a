/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: packages that a session requires. Packages in the box's root count as installed; others must
 * be installed first (op/session_install.h).
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>

struct packages;
struct session_request;

/**
 * dependencies_read - a list of {"name", "version"}, checked; names in lower case, each once.
 * Return: owned, or NULL with *err. Pure.
 */
json_t *dependencies_read(const char *path, const json_t *list, struct error *err) attr_must_check;
/**
 * dependencies_resolve - Return: owned, the session's members that list the packages; *err names
 * the first one missing.
 */
json_t *dependencies_resolve(struct packages *packages, const json_t *wanted,
                             struct error *err) attr_must_check;
/** dependencies_of - names with versions, "numpy==2.1", as dependencies_read gives them. Owned. */
json_t *dependencies_of(char *const *packages) attr_must_check;
/** dependencies_list - the opposite. Owned. */
char **dependencies_list(const json_t *wanted) attr_must_check;
/** dependencies_installed - as dependencies_resolve, after an installation into @folder of the
 * workspace whose lock is @lock. */
json_t *dependencies_installed(const json_t *wanted, const char *lock,
                               const char *folder) attr_must_check;
/**
 * dependencies_add - @now, taken, with what @before (JSON of these functions, may be NULL) lists
 * besides: the latest 500 packages. Return: JSON, owned.
 */
char *dependencies_add(const char *before, json_t *now) attr_must_check;
/** dependencies_have - whether @text, JSON of the two functions above (may be NULL), has @package.
 */
bool dependencies_have(const char *text, const char *package);
/** dependencies_failed - the same after a failed installation. */
json_t *dependencies_failed(const json_t *wanted, const char *why) attr_must_check;
