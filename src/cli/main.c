/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

/* Started without a standard stream, our first descriptor would take its place and its output. */
static int open_standard_streams(void)
{
	int fd;

	do {
		fd = fd_open("/dev/null", O_RDWR, 0);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? fd : fd_close(fd) + 1;
}

int main(int argc, char **argv)
{
	if (open_standard_streams() < 0)
		return CLI_OURS;
	return commands_main(argv + (argc > 0));
}
