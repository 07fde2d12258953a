/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/zygote.h"
#include "wire/inject.h"
#include "wire/reattach.h"

/* The agent's descriptors; the last two are close-on-exec. */
enum agent_fd {
	AGENT_NULL_MAX = 2,
	AGENT_SOCKET = 3,
	AGENT_REATTACH = REATTACH_FD,
	AGENT_INJECT = INJECT_FD,
	AGENT_EXE = 6,
	AGENT_SYNC = 7,
	AGENT_FD_END = 8,
};

/* At least AGENT_FD_END, so that place_fds() does not overwrite it. */
static int move_fd_up(int *fd)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, AGENT_FD_END);

	if (high < 0)
		return -errno;
	*fd = high;
	return 0;
}

/* @fd -1: closes @number. */
static int put_fd(int fd, int number)
{
	if (fd >= 0 ? dup2(fd, number) < 0 : close_range((unsigned)number, (unsigned)number, 0) < 0)
		return -errno;
	return 0;
}

static int place_fds(struct build *b, int exe, int null)
{
	int r;

	for (int fd = 0; fd <= AGENT_NULL_MAX; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	if (dup2(b->agent_box, AGENT_SOCKET) < 0 || dup3(exe, AGENT_EXE, O_CLOEXEC) < 0 ||
	    dup3(b->sync_box, AGENT_SYNC, O_CLOEXEC) < 0)
		return -errno;
	b->sync_box = AGENT_SYNC;
	r = put_fd(b->reattach_box, AGENT_REATTACH);
	if (r >= 0)
		r = put_fd(b->inject_box, AGENT_INJECT);
	if (r < 0)
		return r;
	return close_range(AGENT_FD_END, ~0U, 0) < 0 ? -errno : 0;
}

int step_descriptors(struct build *b, struct error *err)
{
	int exe = b->host->agent_exe;
	/* The box's own, after the pivot. Without it the next open() would get 0. */
	int null = fd_open("/dev/null", O_RDWR, 0);
	int r = null;

	if (r >= 0)
		r = move_fd_up(&null);
	if (r >= 0)
		r = move_fd_up(&exe);
	if (r >= 0)
		r = move_fd_up(&b->agent_box);
	if (r >= 0)
		r = move_fd_up(&b->sync_box);
	if (r >= 0 && b->reattach_box >= 0)
		r = move_fd_up(&b->reattach_box);
	if (r >= 0 && b->inject_box >= 0)
		r = move_fd_up(&b->inject_box);
	if (r >= 0)
		r = place_fds(b, exe, null);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "descriptors of the agent");
	return 0;
}

int step_exec(struct build *b, struct error *err)
{
	static char name[] = "millibox-agent";
	static char keep[] = REATTACH_ARG;
	static char inject[] = INJECT_WORD;
	char *argv[4 + ZYGOTE_WORDS_MAX] = {name};
	char *envp[] = {NULL};
	size_t count = 1;

	if (b->reattach_box >= 0)
		argv[count++] = keep;
	if (b->inject_box >= 0) {
		argv[count++] = inject;
		for (size_t i = 0; b->zygote->argv[i]; i++)
			argv[count++] = b->zygote->argv[i];
	}

	(void)execveat(AGENT_EXE, "", argv, envp, AT_EMPTY_PATH);
	return error_set(err, ERR_BOX_FAILED, errno, "execute the agent");
}
