/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: packages that a session requires. Nothing is fetched: installing packages by name would run
 * untrusted code. Packages in the root of the box count as installed; for others the error advises
 * a template that has them.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>

struct packages;
struct session_request;

/** dependencies_read - a list of {"name", "version"}, checked; names are lower case, each once.
 * Return: owned, or NULL with *err. Pure. */
json_t *dependencies_read(const char *path, const json_t *list, struct error *err) attr_must_check;
/** dependencies_resolve - Return: owned, the members of a session that list the packages; *err
 * names the first one that is missing. */
json_t *dependencies_resolve(const struct packages *packages, const json_t *wanted,
                             struct error *err) attr_must_check;
