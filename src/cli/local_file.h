/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the local file of a transfer, or "-" for a standard stream. A regular file is written under
 * a temporary name and renamed, so that it appears complete or not at all.
 */

#include "base/attr.h"
#include "base/error.h"

struct local_file {
	int fd;
	const char *name; /* borrowed */
	char *part;       /* owned: temporary name; NULL: @name is written */
};

/** local_file_read - Return: 0, or -1 (ERR_INVALID). */
int local_file_read(const char *name, struct local_file *ret_file,
                    struct error *err) attr_must_check;
/** local_file_write - Return: 0, or -1 (ERR_INVALID). */
int local_file_write(const char *name, struct local_file *ret_file,
                     struct error *err) attr_must_check;
/** local_file_keep - close and rename it. */
int local_file_keep(struct local_file *file, struct error *err) attr_must_check;
/** local_file_done - remove it unless kept. */
void local_file_done(struct local_file *file);
#define cleanup_local_file attr_cleanup(local_file_done)
#define LOCAL_FILE_INIT    ((struct local_file){.fd = -1})
