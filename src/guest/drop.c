/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/drop.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core_limit.h"
#include "base/fd.h"
#include "base/sanitized.h"
#include "base/size.h"
#include "guest/filter.h"
#include "guest/landlock.h"

static int step_signals(const struct drop_plan *plan)
{
	sigset_t none;

	(void)plan;
	/* The agent has changed only this disposition since harden_signals(), and blocks what it
	 * reads. */
	if (signal(SIGPIPE, SIG_DFL) == SIG_ERR)
		return -errno;
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int step_session(const struct drop_plan *plan)
{
	(void)plan;
	(void)umask(022);
	return setsid() < 0 ? -errno : 0;
}

static int step_stdio(const struct drop_plan *plan)
{
	/* The agent's own descriptors start at 3, so no source is overwritten here. */
	for (int fd = 0; fd < 3; fd++)
		if (dup2(plan->stdio[fd], fd) < 0)
			return -errno;
	if (plan->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		return -errno;
	/* Descriptor 3 is the agent's control socket until here. 4 is the reattach socket or an
	 * early descriptor of the agent; the plan's descriptors were opened later. */
	if (plan->channel > 0 && dup2(plan->channel, DROP_CHANNEL) < 0)
		return -errno;
	if (plan->stdin_end > 0 && dup2(plan->stdin_end, DROP_STDIN) < 0)
		return -errno;
	return 0;
}

static int step_directory(const struct drop_plan *plan)
{
	return fchdir(plan->workspace) < 0 ? -errno : 0;
}

/* The kernel's form: the C libraries disagree about their types. */
struct kernel_limit {
	uint64_t cur;
	uint64_t max;
};

static int change_limit(int resource, const struct kernel_limit *lim, struct kernel_limit *ret_now)
{
	return syscall(SYS_prlimit64, 0, resource, lim, ret_now) < 0 ? -errno : 0;
}

static int set_limit(int resource, uint64_t value)
{
	struct kernel_limit lim = {.cur = value, .max = value}, now;
	int r = change_limit(resource, &lim, NULL);

	if (r != -EPERM)
		return r;
	/* Raising needs a capability that even root of the host may lack. */
	r = change_limit(resource, NULL, &lim);
	if (r < 0)
		return r;
	now = lim;
	lim.cur = lim.max;
	r = change_limit(resource, &lim, NULL);
	/* gVisor lacks those of queues, signals and priorities, which bound nothing there. It
	 * refuses even what changes nothing; Linux never does. */
	return r == -EPERM && change_limit(resource, &now, NULL) == -EPERM ? 0 : r;
}

struct limit {
	int resource;
	uint64_t value;
};

/* A sanitizer's memory counts as data, and a worker, which executes nothing, still has it. */
static uint64_t data_limit(const struct drop_plan *plan)
{
	bool unlimited = plan->setup->data_limit == 0 || (SANITIZED && !plan->notify);

	return unlimited ? UINT64_MAX : plan->setup->data_limit;
}

static int step_limits(const struct drop_plan *plan)
{
	const struct msg_setup *s = plan->setup;
	const struct limit limits[] = {
		{RLIMIT_CORE, CORE_LIMIT},
		{RLIMIT_NOFILE, s->nofile},
		{RLIMIT_NPROC, s->nproc},
		{RLIMIT_FSIZE, s->fsize},
		{RLIMIT_DATA, data_limit(plan)},
		{RLIMIT_MEMLOCK, 64 * KIB},
		{RLIMIT_MSGQUEUE, 64 * KIB},
		{RLIMIT_SIGPENDING, 4096},
		{RLIMIT_RTPRIO, 0},
		{RLIMIT_NICE, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		int r = set_limit(limits[i].resource, limits[i].value);
		if (r < 0)
			return r;
	}
	return 0;
}

static int close_between(unsigned first, unsigned last)
{
	if (first > last)
		return 0;
	return syscall(SYS_close_range, first, last, 1u << 1 /* UNSHARE */) < 0 ? -errno : 0;
}

/* Close-on-exec from 3 on, except the channel and the two that the next steps need. */
static int step_descriptors(const struct drop_plan *plan)
{
	unsigned first =
		plan->channel > 0 ? DROP_CHANNEL + 1 + (plan->stdin_end > 0) : DROP_CHANNEL;
	int low = plan->status < plan->ruleset ? plan->status : plan->ruleset;
	int high = plan->status < plan->ruleset ? plan->ruleset : plan->status;
	int r = 0;

	if (low < 3) /* no ruleset */
		low = high;
	r = close_between(first, (unsigned)low - 1);
	if (r >= 0 && high > low)
		r = close_between((unsigned)low + 1, (unsigned)high - 1);
	if (r >= 0)
		r = close_between((unsigned)high + 1, INT_MAX); /* gVisor refuses UINT_MAX */
	return r;
}

static int drop_ids(uid_t uid, gid_t gid)
{
	/*
	 * Only one id is mapped. What keeps the payload off the agent then is that it is not
	 * dumpable, PID 1's immunity to signals, the filter and Landlock; for the agent's directory
	 * see agent_open_run_dir().
	 */
	if (uid == getuid() && gid == getgid())
		return uid == geteuid() && gid == getegid() ? 0 : -EPERM;
	/* The namespace denies setgroups: there must be no groups, as they could not be dropped. */
	if (getgroups(0, NULL) != 0 && setgroups(0, NULL) < 0)
		return -errno;
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

/* The bounding and ambient sets are empty and locked since the agent started. */
int drop_privileges(uid_t uid, gid_t gid)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {0};
	int r = drop_ids(uid, gid);

	if (r >= 0 && syscall(SYS_capset, &head, none) < 0)
		r = -errno;
	return r;
}

static int step_privileges(const struct drop_plan *plan)
{
	return drop_privileges(plan->setup->uid, plan->setup->gid);
}

static int step_no_new_privs(const struct drop_plan *plan)
{
	(void)plan;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int step_landlock(const struct drop_plan *plan)
{
	return plan->ruleset < 0 ? 0 : landlock_apply(plan->ruleset);
}

static int step_filter(const struct drop_plan *plan)
{
	const struct drop_message msg = {.word = DROP_LISTENER};
	cleanup_close int listener = -1;
	int r = 0;

	/* No cgroup counts memory. First: the payload's own filter forbids it later. */
	if (plan->setup->data_limit > 0) {
		r = filter_install(FILTER_UNCHARGED);
		if (r < 0)
			return r;
	}
	if (!plan->notify)
		return filter_install(FILTER_PAYLOAD_QUIET);
	r = filter_install_payload(&listener);
	if (r < 0 || listener < 0)
		return r;
	return fd_send(plan->status, &msg, sizeof(msg), &listener, 1);
}

struct step {
	const char *what;
	int (*apply)(const struct drop_plan *plan);
};

/*
 * In this order. Descriptors: the sources of stdio and the directory must be open before, and
 * NOFILE may be lower than the numbers in use only when nothing is opened any more. no_new_privs
 * before Landlock and the filter, which require it without capabilities. The filter last: it
 * forbids what the other steps do.
 */
static const struct step steps[] = {
	{"reset signals", step_signals},      {"start a session", step_session},
	{"set up stdio", step_stdio},         {"enter the workspace", step_directory},
	{"set resource limits", step_limits}, {"close descriptors", step_descriptors},
	{"drop privileges", step_privileges}, {"set no_new_privs", step_no_new_privs},
	{"apply Landlock", step_landlock},    {"install the system call filter", step_filter},
};

int drop_to_payload(const struct drop_plan *plan, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int r = steps[i].apply(plan);
		if (r < 0)
			return error_set(err, ERR_BOX_FAILED, -r, "%s: %s", steps[i].what,
			                 strerror(-r));
	}
	return 0;
}

int drop_enter(const char *cwd, struct error *err)
{
	cleanup_close int dir = -1;
	int sys = 0;

	if (cwd[0] == '\0')
		return 0;
	dir = fd_open_beneath(AT_FDCWD, cwd, O_PATH | O_DIRECTORY, 0);
	if (dir < 0 || fchdir(dir) < 0)
		sys = dir < 0 ? -dir : errno;
	if (sys == 0)
		return 0;
	return error_set(err, ERR_INVALID, sys, "enter '%.128s': %s", cwd, strerror(sys));
}

int drop_report(int status, enum drop_word word, const struct error *err)
{
	struct drop_message msg = {.word = word};

	if (err)
		msg.error = *err;
	return fd_send(status, &msg, sizeof(msg), NULL, 0);
}
