/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the environment of a program, built from nothing: a fixed base, what its runner needs, what
 * the caller asks for, in this order, the last one given wins. Pure.
 */

#include "base/error.h"

/** policy_env_check - the caller's NULL-terminated NAME=value list (or NULL) may be used. */
int policy_env_check(char *const *env, struct error *err) attr_must_check;
/** policy_env_make - the whole environment, owned. @runner and @caller may be NULL. */
char **policy_env_make(char *const *runner, char *const *caller) attr_must_check;
