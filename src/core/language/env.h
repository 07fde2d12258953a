/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the environment of a program, built from nothing: a fixed base, what its runner needs, what
 * the caller asks for, in this order, the last one given wins. Pure.
 */

#include "base/error.h"

/** env_check - the caller's NULL-terminated NAME=value list (or NULL) may be used. */
int env_check(char *const *env, struct error *err) attr_must_check;
/** env_make - the whole environment, owned. @runner and @caller may be NULL. */
char **env_make(char *const *runner, char *const *caller) attr_must_check;
/** env_check_variable - "NAME=value" from a caller. Return: 0, -EINVAL (no name), -EPERM
 * (a variable that makes a loader or interpreter run or read something). */
int env_check_variable(const char *variable) attr_must_check;
