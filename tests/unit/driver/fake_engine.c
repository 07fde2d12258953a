/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays millibox-engine for test_engine_spawn.c, as a separate program: what it inherits can only
 * be seen from inside. The value of --agent selects its behaviour.
 */
#include "base/fd.h"
#include "base/str.h"
#include "engine/engine.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

extern char **environ;

static bool is_null_device(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static bool has_extra_fds(void)
{
	for (int fd = ENGINE_SOCKET_FD + 1; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return true;
	return false;
}

static bool has_touched_signals(void)
{
	struct sigaction act;
	sigset_t mask;

	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int signo = 1; signo < 32; signo++)
		if (sigismember(&mask, signo) == 1 ||
		    (sigaction(signo, NULL, &act) == 0 && act.sa_handler == SIG_IGN))
			return true;
	return false;
}

static bool has_wrong_arguments(int argc, char **argv)
{
	static const char *const expected[] = {
		"fake_engine", "--agent",    NULL,        "--runners", "/run ners",
		"--uid-base",  "4294901760", "--max-cpu", "0",         "--log-level",
		"warn",        "--identity", NULL};

	if (argc != (int)ARRAY_SIZE(expected))
		return true;
	for (int i = 0; i < argc; i++)
		if (expected[i] && !str_equal(argv[i], expected[i]))
			return true;
	return false;
}

static const char *find_fault(int argc, char **argv)
{
	if (environ[0])
		return "the environment is not empty";
	if (!is_null_device(0) || !is_null_device(1))
		return "0 and 1 are not /dev/null";
	if (has_extra_fds())
		return "a descriptor was left open";
	if (has_touched_signals())
		return "a signal is blocked or ignored";
	if (has_wrong_arguments(argc, argv))
		return "the arguments are wrong";
	return NULL;
}

static int answer(const char *mode, const char *fault)
{
	struct engine_reply reply = {
		.op = ENGINE_PROBED,
		.seq = 1,
		.probe = {.layers = LAYERS_ALL, .ids = ENGINE_IDS_SUBID, .boxes_max = 5}};
	size_t len = sizeof(reply);

	if (fault || str_equal(mode, "fail")) {
		reply = (struct engine_reply){.op = ENGINE_FAILED, .seq = 1};
		(void)error_set(&reply.error, ERR_SYSTEM, EPERM, "%s",
		                fault ? fault : "no user namespaces");
	}
	if (str_equal(mode, "other"))
		reply.op = ENGINE_GONE;
	if (str_equal(mode, "nonsense"))
		reply.probe.ids = ENGINE_IDS_COUNT;
	if (str_equal(mode, "short"))
		len = 8;
	/* As a file of the import group. */
	return fd_send(ENGINE_SOCKET_FD, &reply, len, &(int){STDERR_FILENO}, 1);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";
	struct engine_request request;
	int ends = 0;

	if (str_equal(mode, "die"))
		return 3;
	if (fd_recv(ENGINE_SOCKET_FD, &request, sizeof(request), NULL, NULL) !=
	            (ssize_t)sizeof(request) ||
	    request.op != ENGINE_PROBE)
		return 4;
	if (!str_equal(mode, "mute") && answer(mode, find_fault(argc, argv)) < 0)
		return 5;
	if (str_equal(mode, "leave"))
		return 6;
	while (fd_recv(ENGINE_SOCKET_FD, &request, sizeof(request), NULL, NULL) > 0)
		ends++;
	return ends > 0;
}
