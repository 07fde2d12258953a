/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tree_diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/tree_entry.h"

/* Everything new gets a name of its own first and is renamed: a reader sees the old entry or the
 * new one. */

#define CHUNK    (1u << 30)
#define PART_LEN 40
#define NOT_MADE "it could not be written"
#define CHANGED  "it has changed meanwhile"

static void part_name(char ret_name[PART_LEN])
{
	uint64_t number = 0;

	(void)!getrandom(&number, sizeof(number), 0);
	(void)snprintf(ret_name, PART_LEN, ".millibox-%016llx", (unsigned long long)number);
}

/* A relative link that cannot leave the directory that holds @path. Behind a name ".." could be the
 * parent of another link's target: it is accepted only in front. */
static bool is_inside(const char *path, const char *link)
{
	bool has_name = false;
	int depth = 0;

	if (link[0] == '/')
		return false;
	for (const char *c = path; *c; c++)
		depth += *c == '/';
	while (*link) {
		size_t len = strcspn(link, "/");

		if (len == 2 && link[0] == '.' && link[1] == '.') {
			if (has_name || --depth < 0)
				return false;
		} else if (len != 1 || link[0] != '.') {
			has_name = true;
		}
		link += len;
		link += strspn(link, "/");
	}
	return true;
}

static mode_t own_umask(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return mask;
}

/* Who may read a file may execute it, if somebody may. */
static mode_t execute_bits(mode_t mode, mode_t wanted)
{
	return wanted & 0111 ? (mode & 0444) >> 2 : 0;
}

/* Return: the permissions that the entry gets. */
static mode_t choose_mode(const struct tree_change *change, const struct tree_wishes *wishes)
{
	mode_t old = change->old_mode, new = change->new_mode;

	if (wishes->modes)
		return new &TREE_PERMISSIONS;
	if ((old & S_IFMT) != (new &S_IFMT))
		return new &TREE_PERMISSIONS & ~own_umask();
	if (S_ISDIR(old))
		return old & TREE_PERMISSIONS;
	if (!(old & 0111) == !(new & 0111))
		return old & TREE_PERMISSIONS;
	return (old & TREE_PERMISSIONS & ~0111U) | execute_bits(old, new);
}

static int copy_bytes(int from, int to)
{
	ssize_t n;

	do
		n = sendfile(to, from, NULL, CHUNK);
	while (n > 0);
	return n < 0 ? -errno : 0;
}

static int make_file(int parent, const char *name, int after, const struct tree_change *change,
                     mode_t mode)
{
	cleanup_close int from = fd_open_beneath(after, change->path, O_RDONLY, 0);
	cleanup_close int to = -1;

	if (from < 0)
		return from;
	to = fd_open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (to < 0)
		return to;
	if (copy_bytes(from, to) < 0 || fchmod(to, mode) < 0)
		return -errno;
	return 0;
}

static int make_link(int parent, const char *name, int after, const struct tree_change *change)
{
	cleanup_free char *link = tree_entry_link(after, change->path);

	return link && symlinkat(link, parent, name) == 0 ? 0 : -EIO;
}

/* A file or a link, in place of what is there. */
static const char *replace_entry(int parent, const char *name, int after,
                                 const struct tree_change *change, mode_t mode)
{
	char part[PART_LEN];
	int r;

	part_name(part);
	r = S_ISLNK(change->new_mode) ? make_link(parent, part, after, change)
	                              : make_file(parent, part, after, change, mode);
	/* A new entry must not replace one that appeared meanwhile. */
	if (r == 0 && renameat2(parent, part, parent, name,
	                        change->kind == TREE_ADDED ? RENAME_NOREPLACE : 0) == 0)
		return NULL;
	(void)unlinkat(parent, part, 0);
	return NOT_MADE;
}

static const char *change_dir(int parent, const char *name, const struct tree_change *change,
                              mode_t mode)
{
	cleanup_close int dir = -1;

	if (!S_ISDIR(change->old_mode) && mkdirat(parent, name, 0700) < 0)
		return NOT_MADE;
	dir = fd_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return dir >= 0 && fchmod(dir, mode) == 0 ? NULL : NOT_MADE;
}

static const char *remove_entry(int parent, const char *name, mode_t mode)
{
	return unlinkat(parent, name, S_ISDIR(mode) ? AT_REMOVEDIR : 0) == 0
	               ? NULL
	               : "it could not be removed";
}

static const char *check_link(int after, const struct tree_change *change)
{
	cleanup_free char *link = NULL;

	if (!S_ISLNK(change->new_mode))
		return NULL;
	link = tree_entry_link(after, change->path);
	return link && is_inside(change->path, link) ? NULL : "the link leads outside";
}

const char *tree_apply(int target, int before, int after, const struct tree_change *change,
                       const struct tree_wishes *wishes)
{
	const char *name,
		*reason = change->risk && !wishes->risky ? change->risk : check_link(after, change);
	cleanup_close int parent = -1;
	mode_t mode;
	bool was_dir = S_ISDIR(change->old_mode), is_dir = S_ISDIR(change->new_mode);

	if (reason)
		return reason;
	parent = tree_entry_parent(target, change->path, &name);
	if (parent < 0)
		return "its directory is missing";
	if (!tree_entry_same(target, before, change->path))
		return CHANGED;
	if (change->kind == TREE_REMOVED)
		return remove_entry(parent, name, change->old_mode);
	if (change->new_mode == 0)
		return "it is neither a file, a directory nor a link";
	/* A rename does not replace a directory with a file, or the other way round. */
	if (is_dir != was_dir && change->old_mode)
		reason = remove_entry(parent, name, change->old_mode);
	if (reason)
		return reason;
	mode = choose_mode(change, wishes);
	return is_dir ? change_dir(parent, name, change, mode)
	              : replace_entry(parent, name, after, change, mode);
}
