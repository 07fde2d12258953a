/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a local directory as a tar stream, both ways, in a child process: the caller sends or
 * receives the stream meanwhile.
 *
 * A session's archive is hostile. Unpacking never leaves the directory, follows no link, and drops
 * owners and set-id bits.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <sys/types.h>

struct dir_archive {
	pid_t pid; /* 0: none */
	int fd;    /* owned: the stream */
};

#define DIR_ARCHIVE_INIT ((struct dir_archive){.fd = -1})

/** dir_archive_pack - read @path's entries from fd. */
int dir_archive_pack(const char *path, struct dir_archive *ret_archive,
                     struct error *err) attr_must_check;
/**
 * dir_archive_unpack - write entries to fd: they appear in @path, which is made if missing. @exact:
 * with the permissions of the archive; else the umask applies.
 */
int dir_archive_unpack(const char *path, bool exact, struct dir_archive *ret_archive,
                       struct error *err) attr_must_check;
/** dir_archive_end - close the stream and wait. Return: 0, or -1: the child has said why. */
int dir_archive_end(struct dir_archive *archive) attr_must_check;
/** dir_archive_done - as _end, after a failure: kills the child. */
void dir_archive_done(struct dir_archive *archive);
#define cleanup_dir_archive attr_cleanup(dir_archive_done)
