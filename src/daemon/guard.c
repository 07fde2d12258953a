/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/guard.h"

#include "base/core_limit.h"
#include "base/fd.h"
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int guard_fork(struct guard *g, const int ends[2], void (*run)(const void *ctx, int link),
               const void *ctx, struct error *err)
{
	int r;

	*g = (struct guard){.pid = fork(), .link = ends[0]};
	r = errno;
	if (g->pid == 0) {
		run(ctx, ends[1]);
		_exit(1);
	}
	(void)fd_close(ends[1]);
	if (g->pid > 0)
		return 0;
	(void)fd_close(ends[0]);
	*g = (struct guard){.link = -1};
	return error_set(err, ERR_SYSTEM, r, "fork");
}

int guard_drop(const char *name, const uint32_t *caps, size_t count)
{
	static const int ignored[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
	                              SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};

	/* Ctrl-C goes to the whole group; a guard outlives the daemon. */
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)prctl(PR_SET_NAME, name);
	if (setrlimit(RLIMIT_CORE, &core) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		data[0].effective = data[0].permitted = caps[i];
		if (syscall(SYS_capset, &header, data) == 0)
			return 0;
	}
	return -errno;
}

void guard_end(struct guard *g)
{
	if (g->pid <= 0)
		return;
	g->link = fd_close(g->link);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	g->pid = 0;
}
