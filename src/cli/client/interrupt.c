/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"

int interrupt_open(struct error *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	int fd;

	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return error_set(err, ERR_SYSTEM, errno, "ignore SIGPIPE");
	fd = fd_signalfd(signals, ARRAY_SIZE(signals));
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "create a signal descriptor");
	return fd;
}

int interrupt_taken(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (poll(&ready, 1, 0) != 1 || read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}
