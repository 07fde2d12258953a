/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the environment of a program, built from nothing: a fixed base, then what the runner
 * needs, then what the caller requests. A later value overrides an earlier one. Pure.
 */

#include "base/error.h"

/** env_check - check the caller's NULL-terminated NAME=value list; may be NULL. */
int env_check(char *const *env, struct error *err) attr_must_check;
/** env_make - build the whole environment, owned. @runner and @caller may be NULL. */
char **env_make(char *const *runner, char *const *caller) attr_must_check;
/**
 * env_check_variable - check the caller's "NAME=value". Return: 0, -EINVAL (bad name), -EPERM (a
 * variable that makes a loader or interpreter run or read something).
 */
int env_check_variable(const char *variable) attr_must_check;
