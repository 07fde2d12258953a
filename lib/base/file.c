/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define READ_CHUNK ((size_t)64 * 1024)
#define NUMBER_MAX 32

/* At the maximum one more byte tells "just fits" from "too large". */
static int expect_end(int fd)
{
	char extra;
	ssize_t n = fd_read_all(fd, &extra, 1);

	if (n < 0)
		return (int)n;
	return n > 0 ? -EFBIG : 0;
}

static int read_into(int fd, struct buf *b)
{
	for (;;) {
		size_t room = b->max - b->len;
		size_t want = room < READ_CHUNK ? room : READ_CHUNK;
		ssize_t n;

		if (room == 0)
			return expect_end(fd);
		if (buf_reserve(b, want) < 0)
			return -ENOMEM;
		n = fd_read_all(fd, b->data + b->len, want);
		if (n < 0)
			return (int)n;
		b->len += (size_t)n;
		b->data[b->len] = '\0';
		if ((size_t)n < want)
			return 0;
	}
}

int file_read_at(int dir, const char *path, struct buf *b)
{
	cleanup_close int fd = fd_open_at(dir, path, O_RDONLY, 0);
	size_t before = b->len;
	int r;

	if (fd < 0)
		return fd;
	r = read_into(fd, b);
	if (r < 0 && b->data) {
		b->len = before;
		b->data[before] = '\0';
	}
	return r;
}

static int finish_text(char *ret_text, size_t size, ssize_t n)
{
	if (n >= 0 && (size_t)n == size)
		n = -EFBIG;
	/* The caller would see a shorter string. */
	else if (n > 0 && memchr(ret_text, '\0', (size_t)n))
		n = -EINVAL;
	if (n < 0) {
		ret_text[0] = '\0';
		return (int)n;
	}
	if (n > 0 && ret_text[n - 1] == '\n')
		n--;
	ret_text[n] = '\0';
	return 0;
}

int file_read_text_at(int dir, const char *path, char *ret_text, size_t size)
{
	cleanup_close int fd = fd_open_at(dir, path, O_RDONLY, 0);

	assert(size > 0);
	ret_text[0] = '\0';
	return fd < 0 ? fd : finish_text(ret_text, size, fd_read_all(fd, ret_text, size));
}

int file_read_again(int fd, char *ret_text, size_t size)
{
	ssize_t n;

	assert(size > 0);
	/* Kernel files are consistent only within one read(2). */
	do
		n = pread(fd, ret_text, size, 0);
	while (n < 0 && errno == EINTR);
	return finish_text(ret_text, size, n < 0 ? -errno : n);
}

int file_read_u64_at(int dir, const char *path, uint64_t *ret_value)
{
	char text[32];
	int r = file_read_text_at(dir, path, text, sizeof(text));

	if (r < 0)
		return r;
	if (str_equal(text, "max")) {
		*ret_value = UINT64_MAX;
		return 0;
	}
	return parse_u64(text, ret_value);
}

int file_find_key(const char *text, const char *key, uint64_t *ret_value)
{
	size_t len = strlen(key);

	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		char number[NUMBER_MAX];

		end = strchrnul(line, '\n');
		if (strncmp(line, key, len) != 0 || line[len] != ' ')
			continue;
		line += len + 1;
		if ((size_t)(end - line) >= sizeof(number))
			return -EINVAL;
		memcpy(number, line, (size_t)(end - line));
		number[end - line] = '\0';
		return parse_u64(number, ret_value);
	}
	return -ENOENT;
}

int file_write_at(int dir, const char *path, const char *text)
{
	cleanup_close int fd = fd_open_at(dir, path, O_WRONLY, 0);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* The kernel took the first part as the whole value; the rest would be another command. */
	return (size_t)n == len ? 0 : -EIO;
}

int file_create_at(int dir, const char *path, unsigned mode, const void *data, size_t len)
{
	cleanup_close int fd = -1;
	int r;

	fd = fd_open_at(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (fd < 0)
		return fd;
	r = fd_write_all(fd, data, len);
	if (r == 0 && fchmod(fd, (mode_t)mode) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, path, 0);
	return r;
}

static int make_dir(const char *path, unsigned mode)
{
	struct stat st;

	if (mkdir(path, (mode_t)mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int file_mkdir_parents(const char *path, unsigned mode)
{
	char part[PATH_MAX];
	int r = str_copy(part, sizeof(part), path);

	if (r < 0)
		return r;
	if (part[0] == '\0')
		return -ENOENT;
	for (char *p = part + 1; *p; p++) {
		if (*p != '/' || p[-1] == '/')
			continue;
		*p = '\0';
		r = make_dir(part, mode);
		if (r < 0)
			return r;
		*p = '/';
	}
	return make_dir(part, mode);
}

bool file_is_sole(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1;
}
