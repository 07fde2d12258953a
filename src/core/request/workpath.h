/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: normalises a path in the workspace as callers write it: relative, components that are
 * names, no "." or "..", "" for the workspace itself. Checks the form only; the box decides what
 * the names lead to. Pure.
 */

#include "base/attr.h"
#include "base/error.h"

#define WORKPATH_MAX            4096
#define WORKPATH_COMPONENTS_MAX 32
#define WORKPATH_COMPONENT_MAX  255

enum workpath_rule {
	WORKPATH_RELATIVE, /* reject a leading slash */
	WORKPATH_STRIP, /* leading slashes mean the workspace: "/etc/passwd" is etc/passwd in it */
};

/**
 * workpath_clean - *ret_path has room for WORKPATH_MAX + 1 bytes; errors name @field. Accepts
 * "./a", "a//b", "a/" and "."; rejects ".." anywhere.
 */
int workpath_clean(const char *path, enum workpath_rule rule, const char *field,
                   char ret_path[WORKPATH_MAX + 1], struct error *err) attr_must_check;
