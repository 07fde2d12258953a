/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cgroup_path.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/size.h"
#include "base/str.h"

#define PATH_LEN   512
#define TEXT_MAX   (64 * KIB)
#define BOXES_NAME "millibox" /* the engine's group, see engine/cgroup.h */

/* Where systemd, and everything that follows it, mounts them. */
static const char *const mounts[] = {[false] = "/sys/fs/cgroup/memory", [true] = "/sys/fs/cgroup"};

static const struct {
	const char *limit, *usage, *cache;
} files[] = {
	[false] = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	[true] = {"memory.max", "memory.current", "inactive_file"},
};

bool host_memory_find(const char *meminfo, const char *key, uint64_t *ret_bytes)
{
	const char *at = strstr(meminfo, key);
	uint64_t kib = 0;

	if (!at)
		return false;
	at += strlen(key);
	at += strspn(at, " \t");
	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++)
		kib = kib * 10 + (uint64_t)(*at - '0');
	*ret_bytes = kib * KIB;
	return true;
}

static bool read_meminfo(const char *key, uint64_t *ret_bytes)
{
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);

	return file_read_at(AT_FDCWD, "/proc/meminfo", &text) >= 0 && text.data &&
	       host_memory_find(text.data, key, ret_bytes);
}

static uint64_t read_cache(int dir, const char *key)
{
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	uint64_t bytes;

	if (file_read_at(dir, "memory.stat", &text) < 0 || !text.data ||
	    file_find_key(text.data, key, &bytes) < 0)
		return 0;
	return bytes;
}

void host_memory_group(int dir, bool v2, struct host_memory_group *ret_group)
{
	uint64_t limit, usage, cache;

	*ret_group = (struct host_memory_group){UINT64_MAX, UINT64_MAX};
	/* v1 has no word for "none", but a number that no machine has. */
	if (file_read_u64_at(dir, files[v2].limit, &limit) < 0 || limit >= INT64_MAX / 2 ||
	    file_read_u64_at(dir, files[v2].usage, &usage) < 0)
		return;
	cache = read_cache(dir, files[v2].cache);
	usage -= cache < usage ? cache : usage;
	ret_group->limit_bytes = limit;
	ret_group->available_bytes = usage < limit ? limit - usage : 0;
}

/* *boxes: boxes are below @path; else their memory is not counted there. */
static void look_at(const char *path, bool v2, bool *boxes, struct host_memory_group *least)
{
	struct host_memory_group group;
	cleanup_close int dir = fd_open(path, O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return;
	*boxes = *boxes || faccessat(dir, BOXES_NAME, F_OK, 0) == 0;
	if (!*boxes)
		return;
	host_memory_group(dir, v2, &group);
	if (group.limit_bytes < least->limit_bytes)
		least->limit_bytes = group.limit_bytes;
	if (group.available_bytes < least->available_bytes)
		least->available_bytes = group.available_bytes;
}

/* Of the daemon's group and all above it that contain the boxes: of a container, or of a unit with
 * delegation. */
static struct host_memory_group least_of_groups(void)
{
	struct host_memory_group least = {UINT64_MAX, UINT64_MAX};
	char text[4096], own[PATH_LEN], path[2 * PATH_LEN];

	if (file_read_text_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return least;
	for (int v2 = 0; v2 < 2; v2++) {
		char *slash = own;
		bool boxes = false;

		if (cgroup_path_find(text, v2 ? NULL : "memory", own, sizeof(own)) < 0)
			continue;
		while (slash && str_format(path, sizeof(path), "%s%s", mounts[v2], own) >= 0) {
			look_at(path, v2, &boxes, &least);
			slash = strrchr(own, '/');
			if (slash)
				*slash = '\0';
		}
	}
	return least;
}

uint64_t host_memory_total(void)
{
	uint64_t limit = least_of_groups().limit_bytes;
	uint64_t total;

	if (!read_meminfo("MemTotal:", &total))
		total = 0;
	return limit < total ? limit : total;
}

uint64_t host_memory_available(void)
{
	uint64_t groups = least_of_groups().available_bytes;
	uint64_t host;

	if (!read_meminfo("MemAvailable:", &host))
		return groups;
	return groups < host ? groups : host;
}
