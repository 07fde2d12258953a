/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

/* A host out of memory kills boxes before its own processes. */
#define BOX_OOM_SCORE "500"

/* The owners of an image's files are mapped so that the box's own overlay can copy them up. */
static int format_map(const struct build *b, char *ret_text, size_t size)
{
	const struct ids *ids = &b->host->ids;
	char files[32] = "";
	int r = 0;

	if (ids->mode == ENGINE_IDS_SINGLE)
		return str_format(ret_text, size, "%u %u 1\n", ids_inside(b->host, BOX_PAYLOAD_ID),
		                  ids->first);
	if (ids->mode == ENGINE_IDS_RANGE && (b->plan.flags & ENGINE_FLAG_IMAGE))
		r = str_format(files, sizeof(files), "%d %u %d\n", BOX_FILES_ID, ids_of_images(ids),
		               IDS_RESERVED);
	if (r < 0)
		return r;
	return str_format(ret_text, size, "%d %u 1\n%d %u 1\n%s", BOX_AGENT_ID,
	                  ids_agent(ids, b->slot), BOX_PAYLOAD_ID, ids_payload(ids, b->slot),
	                  files);
}

/* The kernel pads columns: runs of spaces count as one, those at the start of a line not at all. */
static bool is_same_map(const char *written, const char *read)
{
	bool start = true;

	while (*read) {
		if (*read == ' ' && (start || read[1] == ' ')) {
			read++;
			continue;
		}
		start = *read == '\n';
		if (*read++ != *written++)
			return false;
	}
	/* file_read_again() removed the last newline. */
	return str_equal(written, "\n");
}

static int write_map(int proc, const char *file, const char *map, struct error *err)
{
	cleanup_close int fd = fd_open_at(proc, file, O_RDWR, 0);
	char text[256];
	int r = fd;

	if (r >= 0 && write(fd, map, strlen(map)) < 0)
		r = -errno;
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "write %s", file);
	r = file_read_again(fd, text, sizeof(text));
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "read %s back", file);
	if (!is_same_map(map, text))
		return error_set(err, ERR_BOX_FAILED, 0, "%s differs from what was written", file);
	return 0;
}

static int open_proc(pid_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return fd_open(path, O_PATH | O_DIRECTORY, 0);
}

int step_idmap(struct build *b, struct error *err)
{
	cleanup_close int proc = open_proc(b->pid);
	char map[128];
	int r = proc;

	if (r >= 0)
		r = format_map(b, map, sizeof(map));
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "maps of process %d", (int)b->pid);
	/* Before gid_map: if setgroups were still allowed, the child could drop a group that denies
	 * its members access. */
	r = file_write_at(proc, "setgroups", "deny");
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "deny setgroups");
	if (write_map(proc, "gid_map", map, err) < 0)
		return -1;
	return write_map(proc, "uid_map", map, err);
}

int step_oom_score(struct build *b, struct error *err)
{
	cleanup_close int proc = open_proc(b->pid);
	int r = proc < 0 ? proc : file_write_at(proc, "oom_score_adj", BOX_OOM_SCORE);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "raise oom_score_adj");
	return 0;
}

static int check_engine(int sync)
{
	char byte;

	/* No data and no EOF: the engine is alive. */
	if (recv(sync, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return 0;
	return -EPIPE;
}

int step_become(struct build *b, struct error *err)
{
	uid_t id = ids_inside(b->host, BOX_AGENT_ID);
	int r;

	if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "become id %u", id);
	/* The change of ids has reset both. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "renew the death signal");
	r = check_engine(b->sync_box);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "the engine is gone");
	return 0;
}
