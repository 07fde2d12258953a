/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: packages that a session requires. Nothing is fetched: installing by name would run untrusted
 * code. Packages in the box's root count as installed; for others the error advises a template.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>

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
