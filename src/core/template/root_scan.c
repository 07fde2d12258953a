/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/root_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/template/packages.h"

/* The daemon may neither chroot nor use openat2 (its filter cannot inspect that call), so links are
 * resolved here, name by name, relative to the root. A concurrent change of the root can only make
 * the answer wrong. */

#define LINKS_MAX 40
/* The kernel walks the whole path for each name: this many bytes count as one step. */
#define STEP_BYTES 16

struct walk {
	char done[PATH_MAX]; /* no links; "": the root */
	char rest[PATH_MAX]; /* unresolved */
	int links;
};

static bool take_steps(struct root_scan *scan, uint32_t steps)
{
	if (scan->left < steps) {
		scan->left = 0;
		return false;
	}
	scan->left -= steps;
	return true;
}

/* Return: 1, 0 at the end, or a negative errno. */
static int next_name(struct walk *w, char ret_name[NAME_MAX + 1])
{
	size_t skip = strspn(w->rest, "/");
	size_t len = strcspn(w->rest + skip, "/");

	if (len == 0)
		return 0;
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_name, w->rest + skip, len);
	ret_name[len] = '\0';
	memmove(w->rest, w->rest + skip + len, strlen(w->rest + skip + len) + 1);
	return 1;
}

/* Prepend the target to the rest. */
static int follow_link(int root, struct walk *w, const char *path)
{
	char target[PATH_MAX], joined[PATH_MAX];
	ssize_t len = readlinkat(root, path, target, sizeof(target) - 1);
	int r;

	if (len < 0)
		return -errno;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	target[len] = '\0';
	if (target[0] == '/')
		w->done[0] = '\0';
	r = str_format(joined, sizeof(joined), "%s/%s", target, w->rest);
	return r < 0 ? r : str_copy(w->rest, sizeof(w->rest), joined);
}

static int walk_step(struct root_scan *scan, struct walk *w, const char *name, struct stat *ret_st)
{
	char path[PATH_MAX], *slash = strrchr(w->done, '/');
	int r;

	if (!take_steps(scan, 1 + (uint32_t)strlen(w->done) / STEP_BYTES))
		return -EAGAIN;
	if (str_equal(name, "."))
		return 0;
	if (str_equal(name, "..")) {
		*(slash ? slash : w->done) = '\0';
		return 0;
	}
	r = str_format(path, sizeof(path), "%s%s%s", w->done, w->done[0] ? "/" : "", name);
	if (r < 0)
		return r;
	if (fstatat(scan->root, path, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISLNK(ret_st->st_mode) ? follow_link(scan->root, w, path)
	                                : str_copy(w->done, sizeof(w->done), path);
}

/* Return: 0 with the resolved path in @w, or a negative errno. */
static int resolve_path(struct root_scan *scan, const char *path, struct walk *w,
                        struct stat *ret_st)
{
	char name[NAME_MAX + 1];
	int r;

	*w = (struct walk){0};
	*ret_st = (struct stat){.st_mode = S_IFDIR};
	r = str_copy(w->rest, sizeof(w->rest), path);
	while (r >= 0) {
		r = next_name(w, name);
		if (r <= 0)
			return r;
		r = walk_step(scan, w, name, ret_st);
	}
	return r;
}

int root_open(const char *const *bases, const char *name)
{
	int r = -ENOENT;

	if (!name[0])
		return fd_open("/", O_RDONLY | O_DIRECTORY, 0);
	for (; bases && *bases && r == -ENOENT; bases++) {
		cleanup_free char *path = xasprintf("%s/%s", *bases, name);

		r = fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	return r;
}

int root_scan_stat(struct root_scan *scan, const char *path, struct stat *ret_st)
{
	struct walk w;

	return resolve_path(scan, path, &w, ret_st);
}

/* Return: the mode of a regular file, else 0. */
static mode_t file_mode(struct root_scan *scan, const char *path)
{
	struct walk w;
	struct stat st;

	return resolve_path(scan, path, &w, &st) == 0 && S_ISREG(st.st_mode) ? st.st_mode : 0;
}

bool root_scan_has_program(struct root_scan *scan, const char *path)
{
	return file_mode(scan, path) & S_IXOTH;
}

static DIR *open_dir(struct root_scan *scan, const char *path)
{
	struct walk w;
	struct stat st;
	int fd;
	DIR *dir;

	if (resolve_path(scan, path, &w, &st) < 0)
		return NULL;
	fd = fd_open_at(scan->root, w.done[0] ? w.done : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
	                0);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		(void)fd_close(fd);
	return dir;
}

typedef bool visit_fn(struct root_scan *scan, const char *dir, const char *name, const void *arg);

static bool any_entry(struct root_scan *scan, const char *path, visit_fn *visit, const void *arg)
{
	DIR *dir = open_dir(scan, path);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return false;
	while (!found && take_steps(scan, 1) && (entry = readdir(dir)))
		found = visit(scan, path, entry->d_name, arg);
	(void)closedir(dir);
	return found;
}

struct wanted {
	char name[PACKAGE_NAME_MAX + 1]; /* normalised, unless a module */
	const char *version;             /* NULL: any */
	visit_fn *match;
};

static bool is_dist_info(struct root_scan *scan attr_unused, const char *dir attr_unused,
                         const char *entry, const void *arg)
{
	const struct wanted *w = arg;
	char name[PACKAGE_NAME_MAX + 1], version[PACKAGE_VERSION_MAX + 1];

	return package_parse_entry(entry, name, version) == 0 && str_equal(name, w->name) &&
	       (!w->version || str_equal(version, w->version));
}

static bool is_module(struct root_scan *scan attr_unused, const char *dir attr_unused,
                      const char *entry, const void *arg)
{
	const struct wanted *w = arg;

	return str_equal(entry, w->name);
}

static bool in_site(struct root_scan *scan, const char *dir, const char *name, const void *arg)
{
	static const char *const places[] = {"site-packages", "dist-packages"};
	const struct wanted *w = arg;
	char path[PATH_MAX];

	if (!str_has_prefix(name, "python3"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (str_format(path, sizeof(path), "%s/%s/%s", dir, name, places[i]) >= 0 &&
		    any_entry(scan, path, w->match, w))
			return true;
	return false;
}

static bool in_python(struct root_scan *scan, const struct wanted *w)
{
	return any_entry(scan, "usr/lib", in_site, w) ||
	       any_entry(scan, "usr/local/lib", in_site, w);
}

static bool in_dpkg(struct root_scan *scan, const char *name)
{
	static const char *const forms[] = {"", ":amd64", ":arm64"};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (str_format(path, sizeof(path), "var/lib/dpkg/info/%s%s.list", name, forms[i]) >=
		            0 &&
		    file_mode(scan, path))
			return true;
	return false;
}

bool root_scan_has_package(struct root_scan *scan, const char *package)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-";
	const char *version = strstr(package, "==");
	size_t len = version ? (size_t)(version - package) : strlen(package);
	struct wanted w = {.match = is_dist_info, .version = version ? version + 2 : NULL};
	char name[PACKAGE_NAME_MAX + 1];

	if (len == 0 || len >= sizeof(name) || strspn(package, letters) < len)
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, package);
	if (package_normalise(name, w.name) < 0)
		return false;
	return in_python(scan, &w) || (!version && in_dpkg(scan, name));
}

bool root_scan_has_module(struct root_scan *scan, const char *module)
{
	struct wanted w = {.match = is_module};

	return str_copy(w.name, sizeof(w.name), module) >= 0 && in_python(scan, &w);
}
