/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the other programs of Millibox: where they are, and running one for what it prints. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/**
 * program_find - the path of @name: beside this program (a build tree runs in place), else where it
 * is installed. Return: owned, or NULL (ERR_NOT_FOUND).
 */
char *program_find(const char *name, struct error *err) attr_must_check;
/** program_find_engine - that of the setting engine_path in the environment, else program_find. */
char *program_find_engine(struct error *err) attr_must_check;
/**
 * program_read - run @argv (argv[0] is a path) with our environment and stderr, and collect what it
 * prints. Return: 0 with its wait status in *ret_status, or -1.
 */
int program_read(const char *const *argv, struct buf *ret_out, int *ret_status,
                 struct error *err) attr_must_check;
