/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"

#define FILE_MODE 0666 /* before the umask */

int local_file_read(const char *name, struct local_file *ret_file, struct error *err)
{
	int fd = str_equal(name, "-") ? fd_dup(STDIN_FILENO) : fd_open(name, O_RDONLY, 0);
	struct stat st = {0};

	if (fd < 0)
		return error_set(err, ERR_INVALID, -fd, "read '%s'", name);
	*ret_file = (struct local_file){.fd = fd, .name = name};
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, ERR_INVALID, EISDIR, "read '%s'", name);
	return 0;
}

int local_file_write(const char *name, struct local_file *ret_file, struct error *err)
{
	struct local_file file = {.fd = -1, .name = name};
	struct stat st = {0};

	if (str_equal(name, "-")) {
		file.fd = fd_dup(STDOUT_FILENO);
	} else if (lstat(name, &st) < 0 ? errno == ENOENT : S_ISREG(st.st_mode)) {
		/* Replace regular files only; write to pipes, devices and links. */
		file.part = xasprintf("%s.%d.part", name, (int)getpid());
		file.fd = fd_open(file.part, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE);
	} else {
		file.fd = fd_open(name, O_WRONLY | O_TRUNC, 0);
	}
	if (file.fd < 0) {
		free(file.part);
		return error_set(err, ERR_INVALID, -file.fd, "write '%s'", name);
	}
	*ret_file = file;
	return 0;
}

int local_file_keep(struct local_file *file, struct error *err)
{
	int fd = file->fd;

	file->fd = -1;
	/* Some file systems report a full disk only here. */
	if (close(fd) < 0 || (file->part && rename(file->part, file->name) < 0))
		return error_set(err, ERR_SYSTEM, errno, "write '%s'", file->name);
	free(file->part);
	file->part = NULL;
	return 0;
}

void local_file_done(struct local_file *file)
{
	(void)fd_close(file->fd);
	if (file->part)
		(void)unlink(file->part);
	free(file->part);
}
