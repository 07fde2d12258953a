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
/* More than any "key value" file of the kernel holds. */
#define KEYED_FILE_MAX ((size_t)64 * 1024)

/* At the maximum one more byte decides between "just fits" and "too big". */
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

int file_read_text_at(int dir, const char *path, char *ret_text, size_t size)
{
	cleanup_close int fd = fd_open_at(dir, path, O_RDONLY, 0);
	ssize_t n;

	assert(size > 0);
	ret_text[0] = '\0';
	if (fd < 0)
		return fd;
	n = fd_read_all(fd, ret_text, size);
	if (n >= 0 && (size_t)n == size)
		n = -EFBIG;
	/* A string that ends early would be taken for the whole. */
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

/* The value of "key value" at the start of @line, which ends at its newline or the NUL. */
static int value_of_line(char *line, const char *key, uint64_t *ret_value)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) != 0 || line[len] != ' ')
		return -ENOENT;
	line[strcspn(line, "\n")] = '\0';
	return parse_u64(line + len + 1, ret_value);
}

int file_read_key_at(int dir, const char *path, const char *key, uint64_t *ret_value)
{
	cleanup_buf struct buf b = BUF_INIT(KEYED_FILE_MAX);
	int r = file_read_at(dir, path, &b);

	if (r < 0)
		return r;
	for (char *line = b.data, *end; line && *line; line = end) {
		end = strchr(line, '\n');
		end = end ? end + 1 : line + strlen(line);
		r = value_of_line(line, key, ret_value);
		if (r != -ENOENT)
			return r;
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
	/* The kernel took the first part for the whole: writing the rest would be another order. */
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
	/* The umask is not the caller's wish. */
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
