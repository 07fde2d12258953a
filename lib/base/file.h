/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: whole small files. Plain functions: >= 0 or a negative errno. */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/** file_read_at - append the whole file to @b; -EFBIG beyond its maximum. */
int file_read_at(int dir, const char *path, struct buf *b) attr_must_check;
/**
 * file_read_text_at - a short file (proc, sysfs, cgroup) without its last newline. -EFBIG: does not
 * fit; -EINVAL: has a NUL. @ret_text is "" on failure.
 */
int file_read_text_at(int dir, const char *path, char *ret_text, size_t size) attr_must_check;
/** file_read_u64_at - one decimal number ("max" is UINT64_MAX). */
int file_read_u64_at(int dir, const char *path, uint64_t *ret_value) attr_must_check;
/** file_read_again - like file_read_text_at, on an open file. */
int file_read_again(int fd, char *ret_text, size_t size) attr_must_check;
/** file_find_key - in lines of "key value"; -ENOENT without it. */
int file_find_key(const char *text, const char *key, uint64_t *ret_value) attr_must_check;
/** file_write_at - one write(2) into an existing file, as proc and cgroup require. */
int file_write_at(int dir, const char *path, const char *text) attr_must_check;
/** file_create_at - with exactly @mode and @data; must not exist. All or nothing. */
int file_create_at(int dir, const char *path, unsigned mode, const void *data,
                   size_t len) attr_must_check;
/**
 * file_is_sole - a regular file with one name. Before writing to a file that another user could
 * have planted: a hard link may be another name of another user's file.
 */
bool file_is_sole(int fd);
int file_mkdir_parents(const char *path, unsigned mode) attr_must_check;
