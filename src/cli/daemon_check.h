/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: checks of files by the program milliboxd, which has the rules, so that both agree. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/options.h"
#include <stdbool.h>

/* Help of --json. */
#define DAEMON_CHECK_JSON "print the verdict as JSON: files, valid, error"

/**
 * daemon_check - run milliboxd with @flags, up to NULL, to check the files in @args, and print the
 * verdict. Return: CLI_OK; CLI_FAILED: a file is invalid; or -1 with *err.
 */
int daemon_check(const char *const *flags, const struct args *args, bool json,
                 struct error *err) attr_must_check;
