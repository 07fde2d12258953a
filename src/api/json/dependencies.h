/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: packages that a session asks for. Nothing is fetched: boxes have no network, and a daemon
 * that installs what strangers name would run what strangers wrote. What the box's root has already
 * counts as installed; for all else the answer says how to get it: a template that has it.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>

struct packages;
struct session_request;

/** dependencies_read - a list of {"name", "version"}, checked; names are lower case, each once.
 * Return: owned, or NULL with *err. Pure. */
json_t *dependencies_read(const char *path, const json_t *list, struct error *err) attr_must_check;
/** dependencies_resolve - what is there of @wanted. Return: owned, the members of a session that
 * tell of it; *err is set where something is missing, and names it. */
json_t *dependencies_resolve(const struct packages *packages, const json_t *wanted,
                             struct error *err) attr_must_check;
