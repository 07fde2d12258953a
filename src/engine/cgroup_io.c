/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"

#define V2_FILE "io.max"

/* v1: a file per number. v2: all numbers of a disk in one line. */
static const struct {
	const char *v1_file, *v2_key;
	bool counts_ops;
} rows[] = {
	{"blkio.throttle.read_bps_device", "rbps", false},
	{"blkio.throttle.write_bps_device", "wbps", false},
	{"blkio.throttle.read_iops_device", "riops", true},
	{"blkio.throttle.write_iops_device", "wiops", true},
};

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* "254:0" */
static int parse_device(const char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
	char major[16];
	const char *colon = strchr(text, ':');
	uint64_t numbers[2];

	if (!colon || str_format(major, sizeof(major), "%.*s", (int)(colon - text), text) < 0 ||
	    parse_u64(major, &numbers[0]) < 0 || parse_u64(colon + 1, &numbers[1]) < 0 ||
	    numbers[0] > UINT32_MAX || numbers[1] > UINT32_MAX)
		return -EINVAL;
	*ret_major = (uint32_t)numbers[0];
	*ret_minor = (uint32_t)numbers[1];
	return 0;
}

/* Return: whether @name is a disk that holds something. */
static bool read_disk(int block, const char *name, uint32_t *ret_major, uint32_t *ret_minor)
{
	char path[300], text[32];
	uint64_t sectors;

	return str_format(path, sizeof(path), "%s/size", name) >= 0 &&
	       file_read_u64_at(block, path, &sectors) >= 0 && sectors > 0 &&
	       str_format(path, sizeof(path), "%s/dev", name) >= 0 &&
	       file_read_text_at(block, path, text, sizeof(text)) >= 0 &&
	       parse_device(text, ret_major, ret_minor) >= 0;
}

void io_limits_find_disks(struct io_limits *io, int block)
{
	int fd = fd_open_at(block, ".", O_RDONLY | O_DIRECTORY, 0);
	attr_cleanup(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	unsigned skipped = 0;

	io->disk_count = 0;
	if (!dir) {
		(void)fd_close(fd);
		return;
	}
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		uint32_t major, minor;

		if (entry->d_name[0] == '.' || !read_disk(block, entry->d_name, &major, &minor))
			continue;
		if (io->disk_count == IO_DISKS_MAX) {
			skipped++;
			continue;
		}
		io->disks[io->disk_count].major = major;
		io->disks[io->disk_count++].minor = minor;
	}
	if (skipped > 0)
		log_warn("disk I/O is limited on %d disks; %u more have no limit", IO_DISKS_MAX,
		         skipped);
}

bool io_limits_are_set(const struct io_limits *io)
{
	return io->disk_count > 0 && (io->bytes > 0 || io->ops > 0);
}

const char *io_limits_file(bool v2)
{
	return v2 ? V2_FILE : rows[0].v1_file;
}

static uint64_t value_of(const struct io_limits *io, size_t row)
{
	return rows[row].counts_ops ? io->ops : io->bytes;
}

static int write_v1(const struct io_limits *io, size_t disk, int dir)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && r >= 0; i++) {
		char text[64];

		if (value_of(io, i) == 0)
			continue;
		(void)snprintf(text, sizeof(text), "%u:%u %llu", io->disks[disk].major,
		               io->disks[disk].minor, (unsigned long long)value_of(io, i));
		r = file_write_at(dir, rows[i].v1_file, text);
	}
	return r;
}

static int write_v2(const struct io_limits *io, size_t disk, int dir)
{
	char text[160];
	size_t len = (size_t)snprintf(text, sizeof(text), "%u:%u", io->disks[disk].major,
	                              io->disks[disk].minor);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (value_of(io, i) > 0)
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %s=%llu",
			                        rows[i].v2_key,
			                        (unsigned long long)value_of(io, i));
	return file_write_at(dir, V2_FILE, text);
}

int io_limits_write(const struct io_limits *io, const struct cgroup_tree *tree, int dir,
                    struct error *err)
{
	if (!(tree->kinds & CGROUP_BIT(CGROUP_IO)))
		return 0;
	for (size_t i = 0; i < io->disk_count; i++) {
		int r = tree->v2 ? write_v2(io, i, dir) : write_v1(io, i, dir);

		/* -ENODEV, -ENXIO: the disk was removed after the engine's start. */
		if (r < 0 && r != -ENODEV && r != -ENXIO)
			return error_set(err, ERR_BOX_FAILED, -r, "limit I/O of the disk %u:%u",
			                 io->disks[i].major, io->disks[i].minor);
	}
	return 0;
}
