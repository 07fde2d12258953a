/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: normalises a caller's workspace path: relative, no "." or "..", "" for the workspace. A
 * program calls its workspace /workspace, so "/workspace/a" is "a". Checks the form only; the box
 * decides where it leads. Pure.
 */

#include "base/attr.h"
#include "base/error.h"

#define WORKPATH_MAX            4096
#define WORKPATH_COMPONENTS_MAX 32
#define WORKPATH_COMPONENT_MAX  255

enum workpath_rule {
	WORKPATH_RELATIVE, /* reject any other leading slash */
	WORKPATH_STRIP,    /* "/etc/passwd" is etc/passwd in the workspace */
};

/** workpath_inside - without a leading "/workspace/"; @path itself if it has none. */
const char *workpath_inside(const char *path);
/**
 * workpath_clean - errors name @field. Accepts "./a", "a//b", "a/" and "."; rejects ".." anywhere.
 */
int workpath_clean(const char *path, enum workpath_rule rule, const char *field,
                   char ret_path[WORKPATH_MAX + 1], struct error *err) attr_must_check;
