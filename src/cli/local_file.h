/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the file on this side of a transfer, or "-" for a standard stream. One that is written
 * appears whole, or not at all.
 */

#include "base/attr.h"
#include "base/error.h"

struct local_file {
	int fd;
	const char *name; /* borrowed */
	char *part;       /* owned: what is written until it is whole; NULL: the thing itself is */
};

/** local_file_read - Return: 0, or -1 (ERR_INVALID): it cannot be read. */
int local_file_read(const char *name, struct local_file *ret_file,
                    struct error *err) attr_must_check;
/** local_file_write - as local_file_read. */
int local_file_write(const char *name, struct local_file *ret_file,
                     struct error *err) attr_must_check;
/** local_file_keep - everything is written: it takes the place of what was there. */
int local_file_keep(struct local_file *file, struct error *err) attr_must_check;
/** local_file_done - what was not kept is removed. */
void local_file_done(struct local_file *file);
#define cleanup_local_file attr_cleanup(local_file_done)
#define LOCAL_FILE_INIT    ((struct local_file){.fd = -1})
