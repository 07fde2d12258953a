/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/cgroup.h"

#include <errno.h>
#include <string.h>

#include "base/cgroup_path.h"
#include "base/str.h"

/* As mount options and in /proc/PID/cgroup. */
static const char *const kind_names[CGROUP_KIND_COUNT] = {
	[CGROUP_MEMORY] = "memory",   [CGROUP_PIDS] = "pids",       [CGROUP_CPU] = "cpu",
	[CGROUP_CPUACCT] = "cpuacct", [CGROUP_FREEZER] = "freezer", [CGROUP_IO] = "blkio",
};

struct span {
	const char *data;
	size_t len;
};

/* Splits the part up to @end off the front; false at the end. */
static bool next_field(struct span *rest, char end, struct span *ret_piece)
{
	const char *at;

	if (!rest->data)
		return false;
	at = memchr(rest->data, end, rest->len);
	ret_piece->data = rest->data;
	ret_piece->len = at ? (size_t)(at - rest->data) : rest->len;
	rest->len = at ? rest->len - ret_piece->len - 1 : 0;
	rest->data = at ? at + 1 : NULL;
	return true;
}

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

static bool is_octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
	       p[2] <= '7';
}

/* mountinfo writes space, tab, newline and backslash as \ooo. "/" becomes "". */
static int copy_path(struct span s, char *ret_path, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];

		if (c == '\\' && s.len - i > 3 && is_octal(s.data + i + 1)) {
			c = (char)((s.data[i + 1] - '0') * 64 + (s.data[i + 2] - '0') * 8 +
			           (s.data[i + 3] - '0'));
			i += 3;
		}
		if (len + 1 >= size)
			return -ENAMETOOLONG;
		ret_path[len++] = c;
	}
	if (len == 1 && ret_path[0] == '/')
		len = 0;
	ret_path[len] = '\0';
	return 0;
}

/* Mask of the known controllers in a comma-separated list. */
static uint32_t list_kinds(struct span list)
{
	uint32_t kinds = 0;
	struct span name;

	while (next_field(&list, ',', &name))
		for (int kind = 0; kind < CGROUP_KIND_COUNT; kind++)
			if (kind_names[kind] && span_is(name, kind_names[kind]))
				kinds |= CGROUP_BIT(kind);
	return kinds;
}

static uint32_t known_kinds(const struct cgroup_layout *layout)
{
	uint32_t kinds = 0;

	for (size_t i = 0; i < layout->count; i++)
		kinds |= layout->mounts[i].kinds;
	return kinds;
}

/* id parent major:minor ROOT POINT options [tag...] - TYPE source SUPEROPTIONS */
static bool split_mount(struct span line, struct span *ret_fields)
{
	struct span field;

	for (int i = 0; i < 5; i++) {
		if (!next_field(&line, ' ', &field))
			return false;
		if (i >= 3)
			ret_fields[i - 3] = field;
	}
	do {
		if (!next_field(&line, ' ', &field))
			return false;
	} while (!span_is(field, "-"));
	if (!next_field(&line, ' ', &ret_fields[2]) || !next_field(&line, ' ', &field))
		return false;
	ret_fields[3] = line.data ? line : (struct span){.data = "", .len = 0};
	return true;
}

static void add_mount(struct cgroup_layout *layout, struct span line)
{
	struct span fields[4];
	struct cgroup_mount mount = {0};

	if (!split_mount(line, fields))
		return;
	mount.v2 = span_is(fields[2], "cgroup2");
	if (mount.v2)
		mount.kinds = CGROUP_BIT(CGROUP_UNIFIED);
	else if (span_is(fields[2], "cgroup"))
		mount.kinds = list_kinds(fields[3]);
	/* A second mount of the same hierarchy adds nothing. */
	if (mount.kinds == 0 || (mount.kinds & known_kinds(layout)))
		return;
	if (copy_path(fields[0], mount.root, sizeof(mount.root)) < 0 ||
	    copy_path(fields[1], mount.point, sizeof(mount.point)) < 0)
		return;
	layout->mounts[layout->count++] = mount;
}

int cgroup_line_path(const char *text, bool v2, uint32_t kinds, char *ret_path, size_t size)
{
	int r = v2 ? cgroup_path_find(text, NULL, ret_path, size) : -ENOENT;

	/* Controllers of one tree are in one line. */
	for (int kind = 0; !v2 && r == -ENOENT && kind < CGROUP_KIND_COUNT; kind++)
		if ((kinds & CGROUP_BIT(kind)) && kind_names[kind])
			r = cgroup_path_find(text, kind_names[kind], ret_path, size);
	if (r >= 0 && str_equal(ret_path, "/"))
		ret_path[0] = '\0';
	return r;
}

/* Relative to the mount; groups above the mounted one are out of reach. */
static void find_own_group(struct cgroup_mount *mount, const char *self)
{
	char path[CGROUP_PATH_MAX];
	size_t skip = strlen(mount->root);

	if (cgroup_line_path(self, mount->v2, mount->kinds, path, sizeof(path)) < 0)
		return;
	if (!str_has_prefix(path, mount->root) || (path[skip] != '/' && path[skip] != '\0'))
		return;
	if (str_copy(mount->own, sizeof(mount->own), path + skip) < 0)
		mount->own[0] = '\0';
}

void cgroup_layout_parse(const char *mountinfo, const char *self, struct cgroup_layout *ret_layout)
{
	struct span rest = {.data = mountinfo, .len = strlen(mountinfo)};
	struct span line;

	*ret_layout = (struct cgroup_layout){0};
	while (ret_layout->count < CGROUP_KIND_COUNT && next_field(&rest, '\n', &line))
		add_mount(ret_layout, line);
	for (size_t i = 0; i < ret_layout->count; i++)
		find_own_group(&ret_layout->mounts[i], self);
}
