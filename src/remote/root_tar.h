/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a directory as a tar, made while it is read: the root of boxes on its way to a server.
 * Files, directories and symbolic links only, without set-id bits; all belong to root, which no
 * process of a box is. Above the directory come the names that every box needs: whatever the root
 * has there, the box finds ours.
 *
 * What cannot be read is left out: the payload, which has another id, could not read it either.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "guest/tar.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct root_tar;

struct root_name {
	enum tar_kind kind; /* TAR_FILE, TAR_DIR or TAR_SYMLINK */
	unsigned mode;
	const char *name;
	const char *text; /* content or target; NULL: none */
};

/** root_tar_add - append @name to @b, a part of a tar. */
int root_tar_add(struct buf *b, const struct root_name *name) attr_must_check;

void root_tar_free(struct root_tar *t);
/**
 * root_tar_new - @dir: owned; -1: none. @above: names of root_tar_add, which it takes; @is_above
 * says which those are: a path may stand in a tar once.
 */
struct root_tar *root_tar_new(int dir, struct buf *above, bool (*is_above)(const char *path))
	attr_owned(root_tar_free);
/** root_tar_read - Return: bytes, 0 at the end, or a negative errno. */
ssize_t root_tar_read(struct root_tar *t, char *data, size_t size) attr_must_check;
