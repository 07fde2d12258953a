/* SPDX-License-Identifier: Apache-2.0 */
/*
 * millibox-agent: PID 1 of every box.
 *
 * Theory of operation. The agent is executed with the control socket as descriptor 3. It drops
 * privileges, sends HELLO, and obeys the host's frames until the socket ends for good. One poll
 * loop serves the socket, the children, their pipes, the report socket and refused system calls;
 * each gets a bounded turn per round.
 *
 * When the agent exits, the kernel kills everything left in its pid namespace.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sanitized.h"
#include "guest/agent.h"
#include "guest/dispatch.h"
#include "guest/harden.h"
#include "guest/inject.h"
#include "guest/landlock.h"
#include "guest/reattach.h"
#include "wire/layer.h"

#if SANITIZED
/*
 * Leak detection at exit needs ptrace, which nothing in a box has. Its output is not read, and PID
 * 1 cannot abort: a finding is an exit status that no agent has otherwise, which the daemon logs.
 */
#define FOUND "exitcode=99"
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:" FOUND;
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return FOUND;
}
#endif

/* Per round: dying orphans must not starve other work. */
#define REAP_BATCH 256

enum source {
	SOURCE_SOCKET,
	SOURCE_SOCKET_OUTPUT,
	SOURCE_REATTACH,
	SOURCE_SIGNALS,
	SOURCE_PUT,
	SOURCE_PUT_STATUS,
	SOURCE_PROC,
	SOURCE_RESIDENTS = SOURCE_PROC + PROC_SOURCES,
	SOURCE_DISCARD = SOURCE_RESIDENTS + RESIDENT_SOURCES,
	SOURCE_FILES = SOURCE_DISCARD + DISCARD_MAX,
	SOURCE_PORTS = SOURCE_FILES + FILES_SOURCES,
	SOURCE_BESIDES = SOURCE_PORTS + PORTS_SOURCES, /* last: usually there are none */
	SOURCE_COUNT = SOURCE_BESIDES + WIRE_BESIDE_MAX * BESIDE_SOURCES
};

static void log_fatal(struct agent *a, const char *text)
{
	const struct msg_log msg = {.level = LOG_LEVEL_ERR, .text = wire_str(text)};

	int r = msg_log_encode(&a->ch.out, 0, &msg);

	/* If this fails, EOF on the socket says enough. */
	if (r >= 0)
		r = channel_flush(&a->ch);
	(void)r;
}

/* Occupy 0 to 2: nothing of ours becomes stdio. */
static int open_null(int *ret_fd)
{
	int fd = -1;

	do {
		fd = fd_open("/dev/null", O_RDWR, 0);
		if (fd < 0)
			return fd;
	} while (fd < 3);
	*ret_fd = fd;
	return 0;
}

/* The root of somebody else's container may lack it. */
static int open_place(const struct agent *a, const char *path, int flags, unsigned mode,
                      struct error *err)
{
	int fd = fd_open(path, flags | O_DIRECTORY, 0);

	if (fd == -ENOENT && a->container.is_used) {
		int r = file_mkdir_parents(path, 0755);

		if (r < 0 || (mkdir(path, mode) < 0 && errno != EEXIST))
			return error_set(err, ERR_BOX_FAILED, r < 0 ? -r : errno,
			                 "make %s: the image lacks it, and the agent may not",
			                 path);
		fd = fd_open(path, flags | O_DIRECTORY, 0);
	}
	if (fd < 0)
		return error_set(err, ERR_BOX_FAILED, -fd, "open %s", path);
	return fd;
}

static int open_places(struct agent *a, struct error *err)
{
	const int signals[] = {SIGCHLD};
	int r = open_null(&a->null);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "open /dev/null");
	a->signals = fd_signalfd(signals, ARRAY_SIZE(signals));
	if (a->signals < 0)
		return error_set(err, ERR_BOX_FAILED, -a->signals, "create a signalfd");
	a->workspace = open_place(a, AGENT_WORKSPACE, O_PATH, 0777, err);
	if (a->workspace < 0)
		return -1;
	a->run_dir = open_place(a, AGENT_RUN_DIR, O_RDONLY, 0755, err);
	return a->run_dir < 0 ? -1 : 0;
}

/* Only the engine's skeleton of layered roots has the file; no payload has run yet. */
static bool has_own_root(const struct agent *a)
{
	return a->container.has_own_root || access("/opt/millibox/layered", F_OK) == 0;
}

static int make_ruleset(struct agent *a, struct error *err)
{
	a->landlock_abi = landlock_abi();
	if (a->landlock_abi == 0)
		return 0;
	a->ruleset = landlock_make(a->landlock_abi, has_own_root(a), err);
	if (a->ruleset < 0)
		return -1;
	a->layers |= LAYER_BIT(LAYER_LANDLOCK);
	return 0;
}

static int start_agent(struct agent *a, struct error *err)
{
	int r = 0;

	a->is_init = getpid() == 1;
	/* No effect for PID 1; for trying the agent elsewhere. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (harden_self(a->container.lacks, &a->layers, err) < 0 || open_places(a, err) < 0 ||
	    container_check_stream(a, err) < 0 || make_ruleset(a, err) < 0)
		return -1;
	container_say_ready(a);
	r = agent_send_hello(a);
	if (r >= 0)
		r = agent_flush(a);
	return r < 0 ? error_set(err, ERR_BOX_FAILED, -r, "say hello") : 0;
}

static int reap_children(struct agent *a)
{
	struct signalfd_siginfo info[4];

	/* Signals merge: read to clear, then reap all. */
	(void)!read(a->signals, info, sizeof(info));
	a->reap_again = false;
	for (int i = 0; i < REAP_BATCH; i++) {
		int status = 0;
		struct rusage usage;
		pid_t pid = wait4(-1, &status, WNOHANG, &usage);
		int r = 0;
		if (pid <= 0)
			return 0;
		r = proc_reaped(a, pid, status);
		if (r >= 0)
			r = resident_reaped(a, pid, status);
		if (r >= 0)
			r = beside_reaped(a, pid, status, &usage);
		files_reaped(a, pid);
		put_reaped(&a->put, pid);
		if (r < 0)
			return r;
	}
	a->reap_again = true;
	return 0;
}

/* A full channel drains first; a file is completed before what follows. */
static bool can_dispatch(const struct agent *a)
{
	return !channel_is_full(&a->ch) && !put_is_busy(&a->put);
}

static int dispatch_all(struct agent *a)
{
	struct frame frame;
	int r = 0;

	while (r == 0 && can_dispatch(a)) {
		char text[96];
		r = channel_next(&a->ch, &frame);
		if (r <= 0)
			break;
		r = dispatch_frame(a, &frame);
		if (r != -EPROTO)
			continue;
		(void)snprintf(text, sizeof(text), "message %s: %s", msg_name(frame.type),
		               dispatch_verdict_name(dispatch_check(&frame, a->is_set_up)));
		log_fatal(a, text);
	}
	return r;
}

static void fill_pollfds(const struct agent *a, struct pollfd *fds)
{
	bool read_more = can_dispatch(a) && channel_has_room(&a->ch);
	bool has_output = channel_has_output(&a->ch);

	fds[SOURCE_SOCKET] = (struct pollfd){
		.fd = a->ch.fd,
		.events = (short)((read_more ? POLLIN : 0) |
	                          (a->ch.output < 0 && has_output ? POLLOUT : 0)),
	};
	fds[SOURCE_SOCKET_OUTPUT] = (struct pollfd){
		.fd = has_output ? a->ch.output : -1,
		.events = POLLOUT,
	};
	fds[SOURCE_REATTACH] = (struct pollfd){.fd = a->reattach, .events = POLLIN};
	fds[SOURCE_SIGNALS] = (struct pollfd){.fd = a->signals, .events = POLLIN};
	fds[SOURCE_PUT] = (struct pollfd){.fd = -1, .events = POLLOUT};
	if (a->put.pending.len > 0)
		fds[SOURCE_PUT].fd = a->put.fd;
	fds[SOURCE_PUT_STATUS] = (struct pollfd){.fd = a->put.child.status, .events = POLLIN};
	proc_watch(a, &fds[SOURCE_PROC]);
	resident_watch(a, &fds[SOURCE_RESIDENTS]);
	discard_watch(&a->discard, &fds[SOURCE_DISCARD]);
	files_watch(a, &fds[SOURCE_FILES]);
	ports_watch(a, &fds[SOURCE_PORTS]);
	beside_watch(a, &fds[SOURCE_BESIDES]);
}

static int pump_put(struct agent *a)
{
	uint32_t id = a->put.id;
	struct error err = {0};

	return put_pump(&a->put, &err) < 0 ? agent_fail(a, id, &err) : 0;
}

static int serve_children(struct agent *a, const struct pollfd *fds)
{
	int r = 0;

	if (fds[SOURCE_SIGNALS].revents || a->reap_again)
		r = reap_children(a);
	if (r >= 0 && (fds[SOURCE_PUT].revents || fds[SOURCE_PUT_STATUS].revents))
		r = pump_put(a);
	if (r >= 0)
		r = resident_pump(a, &fds[SOURCE_RESIDENTS]);
	/* After the runners: one that has just answered need not wait. */
	if (r >= 0)
		r = proc_pump(a, &fds[SOURCE_PROC]);
	if (r >= 0)
		r = beside_pump(a, &fds[SOURCE_BESIDES]);
	/* Programs' output goes first. */
	if (r >= 0)
		r = files_pump(a, &fds[SOURCE_FILES]);
	return r < 0 ? r : ports_pump(a, &fds[SOURCE_PORTS]);
}

/* Return: 0; 1: the host is done with us; negative: fatal. */
static int read_host(struct agent *a, const struct pollfd *fds)
{
	short events = fds[SOURCE_SOCKET].revents;
	int r = 1;

	if (events & POLLIN)
		r = channel_fill(&a->ch);
	else if (events & (POLLHUP | POLLERR))
		r = 0;
	if (r > 0 || reattach_on_stream_lost(a))
		return 0;
	return r < 0 ? r : 1;
}

static int serve_round(struct agent *a, const struct pollfd *fds)
{
	int r = read_host(a, fds);

	if (r != 0)
		return r;
	r = serve_children(a, fds);
	if (r >= 0)
		r = dispatch_all(a);
	discard_pump(&a->discard, &fds[SOURCE_DISCARD], a->ch.scratch, sizeof(a->ch.scratch));
	if (r >= 0) {
		int sent = agent_flush(a);

		if ((sent == -EPIPE || sent == -ECONNRESET) && reattach_on_stream_lost(a))
			sent = 0;
		r = sent < 0 ? sent : r;
	}
	/* Last: first handle what the old host sent. */
	if (r == 0 && fds[SOURCE_REATTACH].revents)
		r = reattach_accept(a);
	return r;
}

static int timeout_ms(const struct agent *a)
{
	int one = proc_timeout_ms(a), other = beside_timeout_ms(a);

	if (a->reap_again)
		return 0;
	return one < 0 || (other >= 0 && other < one) ? other : one;
}

/* The kernel refuses more entries than descriptors may be open: it gets those in use. */
static int wait_for_events(const struct agent *a, struct pollfd *fds)
{
	struct pollfd used[SOURCE_COUNT];
	uint16_t sources[SOURCE_COUNT];
	size_t all = SOURCE_BESIDES + a->besides_end * BESIDE_SOURCES;
	nfds_t count = 0;

	for (size_t i = 0; i < all; i++) {
		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		used[count] = fds[i];
		sources[count++] = (uint16_t)i;
	}
	if (poll(used, count, timeout_ms(a)) < 0)
		return -errno;
	for (nfds_t i = 0; i < count; i++)
		fds[sources[i]].revents = used[i].revents;
	return 0;
}

static int run_loop(struct agent *a)
{
	struct pollfd fds[SOURCE_COUNT];
	int r = 0;

	while (r == 0) {
		fill_pollfds(a, fds);
		r = wait_for_events(a, fds);
		if (r == 0)
			r = serve_round(a, fds);
		else if (r == -EINTR)
			r = 0;
	}
	return r;
}

int main(int argc, char **argv)
{
	struct agent *a = NEW(struct agent);
	struct error err = {0};
	int r = 0;

	a->signals = a->null = a->workspace = a->run_dir = a->ruleset = -1;
	put_init(&a->put);
	proc_init(&a->proc);
	resident_init(a);
	discard_init(&a->discard);
	files_init(a);
	ports_init(a);
	if (reattach_open(a, argc, argv) < 0 || container_open(a, argv) < 0 ||
	    inject_open(a, argv) < 0 || channel_init(&a->ch, AGENT_SOCKET, a->container.output) < 0)
		return 1;
	if (start_agent(a, &err) < 0) {
		log_fatal(a, err.msg);
		return 1;
	}
	r = run_loop(a);
	resident_kill_all(a);
	beside_kill_all(a);
	proc_signal(a, SIGKILL);
	return r < 0 ? 1 : 0;
}
