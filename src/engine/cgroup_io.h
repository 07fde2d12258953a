/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: limits of disk I/O. They belong to a tenant, not to a box: a tenant that starts more boxes
 * gets no more of a disk. On v2 they are written into the tenant's group, which holds the groups of
 * its boxes. On v1 the tree "blkio" has one group per tenant, which the processes of all its boxes
 * join; a group per box would cost a tenth of the box's construction.
 *
 * The limit holds for every disk separately. Files in the page cache are read without a disk.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/cgroup.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IO_DISKS_MAX 128

struct io_limits {
	uint64_t bytes; /* per second, read and written separately; 0: no limit */
	uint64_t ops;
	size_t disk_count;
	struct {
		uint32_t major, minor;
	} disks[IO_DISKS_MAX];
};

/**
 * io_limits_find_disks - the disks of @block, a descriptor of /sys/block, without those of size 0.
 * Disks beyond IO_DISKS_MAX get no limit, which is logged.
 */
void io_limits_find_disks(struct io_limits *io, int block);
/** io_limits_are_set - whether there is a limit and a disk for it. */
bool io_limits_are_set(const struct io_limits *io);
/** io_limits_file - a file that groups of @tree have if the kernel can limit disk I/O. */
const char *io_limits_file(bool v2);
/** io_limits_write - into the group @dir of @tree. No-op if @tree does not limit disk I/O. */
int io_limits_write(const struct io_limits *io, const struct cgroup_tree *tree, int dir,
                    struct error *err) attr_must_check;
