/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tree_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"

#define BLOCK (64 * 1024)

int tree_entry_parent(int root, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");

	*ret_name = slash ? slash + 1 : path;
	return fd_open_beneath(root, dir, O_RDONLY | O_DIRECTORY, 0);
}

mode_t tree_entry_mode(int root, const char *path)
{
	const char *name;
	cleanup_close int parent = tree_entry_parent(root, path, &name);
	struct stat st;

	if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return S_IFLNK; /* it has no permissions of its own */
	return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)
	               ? (st.st_mode & S_IFMT) | (st.st_mode & TREE_PERMISSIONS)
	               : 0;
}

char *tree_entry_link(int root, const char *path)
{
	const char *name;
	cleanup_close int parent = tree_entry_parent(root, path, &name);
	char target[PATH_MAX];
	ssize_t len = parent < 0 ? -1 : readlinkat(parent, name, target, sizeof(target));

	return len > 0 && (size_t)len < sizeof(target) ? xstrndup(target, (size_t)len) : NULL;
}

static bool same_links(int a, int b, const char *path)
{
	cleanup_free char *x = tree_entry_link(a, path), *y = tree_entry_link(b, path);

	return x && y && str_equal(x, y);
}

/* Return: bytes, fewer than @size at the end only; or -1. */
static ssize_t read_full(int fd, char *data, size_t size)
{
	size_t len = 0;
	ssize_t n = 1;

	while (len < size && n > 0) {
		n = read(fd, data + len, size - len);
		if (n > 0)
			len += (size_t)n;
	}
	return n < 0 ? -1 : (ssize_t)len;
}

static bool same_bytes(int x, int y)
{
	char one[BLOCK], two[BLOCK];
	ssize_t n;

	do {
		n = read_full(x, one, sizeof(one));
		if (n < 0 || read_full(y, two, sizeof(two)) != n ||
		    memcmp(one, two, (size_t)n) != 0)
			return false;
	} while (n == (ssize_t)sizeof(one));
	return true;
}

static bool same_files(int a, int b, const char *path)
{
	cleanup_close int x = fd_open_beneath(a, path, O_RDONLY | O_NONBLOCK, 0);
	cleanup_close int y = fd_open_beneath(b, path, O_RDONLY | O_NONBLOCK, 0);

	return x >= 0 && y >= 0 && same_bytes(x, y);
}

bool tree_entry_same(int a, int b, const char *path)
{
	mode_t x = tree_entry_mode(a, path), y = tree_entry_mode(b, path);

	if (x != y)
		return false;
	if (S_ISLNK(x))
		return same_links(a, b, path);
	return !S_ISREG(x) || same_files(a, b, path);
}
