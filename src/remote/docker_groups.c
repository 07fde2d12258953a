/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/docker_groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cgroup_path.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#define ID_LEN   64 /* hexadecimal */
#define TEXT_MAX 8192
#define PATH_LEN 512
#define TREES    "/sys/fs/cgroup"

static const struct {
	enum engine_fd fd;
	const char *controller; /* of v1 */
} rows[] = {
	{ENGINE_FD_MEMORY, "memory"},
	{ENGINE_FD_PIDS, "pids"},
	{ENGINE_FD_CPU, "cpuacct"},
};

/* "docker/ID", "docker-ID.scope": the last part of the path names the container. */
static bool names_container(const char *path, const char *id)
{
	const char *last = strrchr(path, '/');

	return last && strstr(last, id) && !strstr(path, "/..");
}

/* Return: a directory, or a negative errno. */
static int open_group(const char *text, const char *controller, const char *id)
{
	char path[PATH_LEN], base[64] = TREES;
	int r = cgroup_path_find(text, controller, path, sizeof(path));
	cleanup_close int tree = -1;

	/* Pure v2: one tree for all. */
	if (r == -ENOENT)
		r = cgroup_path_find(text, NULL, path, sizeof(path));
	else if (r >= 0)
		r = str_format(base, sizeof(base), TREES "/%s", controller);
	if (r < 0)
		return r;
	if (!names_container(path, id))
		return -EPERM;
	tree = fd_open(base, O_PATH | O_DIRECTORY, 0);
	return tree < 0 ? tree : fd_open_beneath(tree, path + 1, O_PATH | O_DIRECTORY, 0);
}

void docker_groups_open(const json_t *container, int ret_fds[ENGINE_FD_COUNT])
{
	const char *id = json_string_value(json_object_get(container, "Id"));
	json_int_t pid =
		json_integer_value(json_object_get(json_object_get(container, "State"), "Pid"));
	char path[32], text[TEXT_MAX];

	if (!id || strlen(id) != ID_LEN || strspn(id, "0123456789abcdef") != ID_LEN || pid <= 0 ||
	    pid > INT32_MAX)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (file_read_text_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int fd = open_group(text, rows[i].controller, id);

		ret_fds[rows[i].fd] = fd < 0 ? -1 : fd;
	}
}
