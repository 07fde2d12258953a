/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: find other programs of Millibox, and run one for its output. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/**
 * program_find - beside this program (a build tree runs in place), else in the installation
 * directories. Return: owned, or NULL (ERR_NOT_FOUND).
 */
char *program_find(const char *name, struct error *err) attr_must_check;
/** program_find_engine - MILLIBOX_ENGINE_PATH, else program_find. */
char *program_find_engine(struct error *err) attr_must_check;
/** program_search - in PATH, a program of others. Return: owned, or NULL. */
char *program_search(const char *name) attr_must_check;
/** program_read_fd - append up to EOF. Return: 0, or a negative errno (-EFBIG). */
int program_read_fd(int fd, struct buf *out) attr_must_check;
/**
 * program_read - run @argv (argv[0] is a path) with our environment and stderr, and read its
 * stdout. Return: 0 with the wait status, or -1.
 */
int program_read(const char *const *argv, struct buf *ret_out, int *ret_status,
                 struct error *err) attr_must_check;
/** program_run - run @argv with our standard input; what it prints goes to our stderr, because
 * stdout is for our own answer. Return: 0 with the wait status, or -1. */
int program_run(const char *const *argv, int *ret_status, struct error *err) attr_must_check;
/** program_read_both - program_read of its stdout and its stderr, in the order of writing. */
int program_read_both(const char *const *argv, struct buf *ret_out, int *ret_status,
                      struct error *err) attr_must_check;
