/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
	int fd;

	/* The first file we open would take the number of a closed standard stream. */
	do {
		fd = fd_open("/dev/null", O_RDWR, 0);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return CLI_ERROR;
	(void)fd_close(fd);
	/* Also installed under this name. */
	if (str_equal(name, command_sandbox_run.name))
		return commands_call(&command_sandbox_run, argv + 1);
	return commands_main(argv + (argc > 0));
}
