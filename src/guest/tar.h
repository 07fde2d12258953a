/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: headers of tar archives: POSIX ustar, with pax headers for a name, link or size that does
 * not fit; reads GNU's long names too. Pure, no allocation.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK    512
#define TAR_NAME_MAX 4096
/* Two names and a few numbers; more is rejected. */
#define TAR_EXTRA_MAX (16 * 1024)

enum tar_kind {
	TAR_FILE,
	TAR_DIR,
	TAR_SYMLINK,
	TAR_HARDLINK,
	TAR_PAX,       /* describes the next entry */
	TAR_PAX_ALL,   /* describes all that follow: ignored */
	TAR_LONG_NAME, /* GNU: the next entry's name */
	TAR_LONG_LINK,
	TAR_OTHER, /* devices, FIFOs, sparse files ... */
};

struct tar_entry {
	enum tar_kind kind;
	uint32_t mode;
	uint64_t size;
	uint64_t mtime; /* seconds */
	uint32_t owner; /* tar_write: user and group */
	char name[TAR_NAME_MAX + 1];
	char link[TAR_NAME_MAX + 1];
};

/** tar_padding - bytes from the end of content of @size to the next header. */
size_t tar_padding(uint64_t size);

/**
 * tar_write - the header block of @entry, after a pax header if needed. Return: bytes written to
 * @ret_blocks, or 0: a name is too long.
 */
#define TAR_HEADERS_MAX (2 * TAR_BLOCK + TAR_EXTRA_MAX)
size_t tar_write(const struct tar_entry *entry, uint8_t ret_blocks[TAR_HEADERS_MAX]);

/** tar_is_end - a block of zeros. */
bool tar_is_end(const uint8_t block[TAR_BLOCK]);
/** tar_read - Return: 0 or -EINVAL. */
int tar_read(const uint8_t block[TAR_BLOCK], struct tar_entry *ret_entry) attr_must_check;
/** tar_read_pax - replaces name, link and size of @entry. Return: 0, -EINVAL or -ENAMETOOLONG. */
int tar_read_pax(const char *records, size_t len, struct tar_entry *entry) attr_must_check;

/**
 * tar_clean_name - normalize "./a/b/" to a path inside, in place; "" is the directory itself.
 * Return: 0 or -EINVAL: absolute, with "..", too long or too deep.
 */
int tar_clean_name(char *name) attr_must_check;
/** tar_link_stays - whether a link at @name (clean) to @target stays inside. */
bool tar_link_stays(const char *name, const char *target);
