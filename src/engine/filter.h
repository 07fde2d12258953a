/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: seccomp filters of the engine and its guard. Installing needs no_new_privs. Return: 0 or a
 * negative errno.
 */

#include "base/attr.h"
#include <stdbool.h>

/** filter_install_engine - refuse what neither the engine nor a box ever needs. Inherited by all.
 * @may_trace: a runtime needs ptrace for its boxes. */
int filter_install_engine(bool may_trace) attr_must_check;
/** filter_install_guard - allow only waiting for the engine and removing names. */
int filter_install_guard(void) attr_must_check;
