/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

/* If a standard stream is closed, the first file we open would take its number and its output. */
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
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";

	if (open_standard_streams() < 0)
		return CLI_ERROR;
	/* The program is installed under this name too. */
	if (str_equal(name, command_sandbox_run.name))
		return commands_call(&command_sandbox_run, argv + 1);
	return commands_main(argv + (argc > 0));
}
