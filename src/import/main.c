/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/sanitized.h"
#include "import/import.h"

/*
 * millibox-import --roots DIR               serves a daemon at descriptor 3
 * millibox-import --roots DIR --name NAME   imports stdin as DIR/NAME; the result goes to stdout
 */

#if SANITIZED
/* Looking for leaks at the end takes ptrace, which who is confined does not have. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static int usage(FILE *to)
{
	(void)fprintf(to,
	              "usage: millibox-import --roots DIR [--name NAME]\n"
	              "Turns the archive of an image (OCI layout, docker save) into a directory.\n"
	              "  --roots X\twhere directories are made\n"
	              "  --name X\timport standard input under this name; else: serve the daemon\n"
	              "  --help\tthis text\n");
	return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"roots", required_argument, NULL, 'r'},
		{"name",  required_argument, NULL, 'n'},
		{"help",  no_argument,       NULL, 'h'},
		{NULL,    0,                 NULL, 0  },
	};
	const char *dir = NULL, *name = NULL;
	cleanup_close int roots = -1;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			dir = optarg;
		else if (c == 'n')
			name = optarg;
		else
			return usage(c == 'h' ? stdout : stderr);
	}
	log_setup("millibox-import", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	if (!dir || optind < argc || (name && !import_is_name(name)))
		return usage(stderr);
	/* Names of files are bytes; libarchive converts them by the locale, and this one keeps all.
	 */
	if (!setlocale(LC_CTYPE, "C.UTF-8") || sodium_init() < 0)
		return 1;
	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	roots = fd_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (roots < 0) {
		(void)fprintf(stderr, "millibox-import: %s: %s\n", dir, strerror(-roots));
		return 1;
	}
	if (!name)
		return serve(roots, IMPORT_SOCKET_FD);
	return serve_one(roots, name, STDIN_FILENO, STDOUT_FILENO) < 0 ? 1 : 0;
}
