/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/terminal.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

#define PTMX "/dev/pts/ptmx"

int terminal_resize(int fd, uint16_t rows, uint16_t cols)
{
	const struct winsize size = {.ws_row = rows, .ws_col = cols};

	return ioctl(fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

/* Erasing a character erases all of its bytes. */
static int expect_utf8(int end)
{
	struct termios modes;

	if (tcgetattr(end, &modes) < 0)
		return -errno;
	modes.c_iflag |= IUTF8;
	return tcsetattr(end, TCSANOW, &modes) < 0 ? -errno : 0;
}

int terminal_open(uint16_t rows, uint16_t cols, int *ret_end)
{
	int end = -1;
	cleanup_close int fd = fd_terminal(PTMX, &end);
	int r = fd < 0 ? fd : terminal_resize(fd, rows, cols);

	if (r >= 0)
		r = expect_utf8(end);
	if (r < 0) {
		(void)fd_close(end);
		return r;
	}
	*ret_end = end;
	return TAKE_FD(fd);
}

pid_t terminal_foreground(int fd)
{
	pid_t group = 0;

	return ioctl(fd, TIOCGPGRP, &group) < 0 || group < 2 ? 0 : group;
}
