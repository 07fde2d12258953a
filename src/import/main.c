/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core_limit.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/sanitized.h"
#include "import/import.h"

/*
 * millibox-import --roots DIR               serves a daemon at descriptor 3
 * millibox-import --roots DIR --name NAME   imports stdin as DIR/NAME; the result goes to stdout
 */

#define AT(member)  offsetof(struct import_limits, member)
#define LIMIT_FIRST 256 /* above all letters */

static const struct limit_option {
	const char *name;
	size_t offset;
	bool is_size;
} limit_options[] = {
	{"max-archive", AT(archive_bytes), true}, {"max-root", AT(root_bytes), true},
	{"max-file", AT(file_bytes), true},       {"max-entries", AT(entries), false},
	{"max-layers", AT(layers), false},        {"max-memory", AT(memory_bytes), true},
};

#if SANITIZED
/* The leak check at exit uses ptrace, which the confined child must not. */
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
	              "  --roots X\tparent of the directories to make\n"
	              "  --name X\timport standard input under this name; default: serve a daemon\n"
	              "Limits of this import (default):\n"
	              "  --max-archive SIZE\tarchive (8Gi)\n"
	              "  --max-root SIZE\tfiles of all layers together (16Gi)\n"
	              "  --max-file SIZE\tone file (4Gi)\n"
	              "  --max-entries N\tfiles, directories and links (500000)\n"
	              "  --max-layers N\tlayers (127, at most 512)\n"
	              "  --max-memory SIZE\tmemory of the unpacking process (1Gi)\n"
	              "  --help\tthis text\n");
	return to == stdout ? 0 : 2;
}

/* Return: whether @text is valid. */
static bool set_limit(struct import_limits *limits, size_t index, const char *text)
{
	const struct limit_option *row = &limit_options[index];
	uint64_t *place = (uint64_t *)((char *)limits + row->offset);
	int r = row->is_size ? parse_size(text, place) : parse_u64(text, place);

	return r == 0 && *place > 0;
}

/* Return: an exit status, or -1 to continue. */
static int parse_options(int argc, char **argv, const char **ret_dir, struct serve_job *job)
{
	struct option options[ARRAY_SIZE(limit_options) + 4] = {
		{"roots", required_argument, NULL, 'r'},
		{"name", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
	};
	int c;

	for (size_t i = 0; i < ARRAY_SIZE(limit_options); i++)
		options[i + 3] = (struct option){limit_options[i].name, required_argument, NULL,
		                                 LIMIT_FIRST + (int)i};
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			*ret_dir = optarg;
		else if (c == 'n')
			job->name = optarg;
		else if (c < LIMIT_FIRST ||
		         !set_limit(&job->limits, (size_t)(c - LIMIT_FIRST), optarg))
			return usage(c == 'h' ? stdout : stderr);
	}
	if (!*ret_dir || optind < argc || (job->name && !import_is_name(job->name)))
		return usage(stderr);
	return -1;
}

int main(int argc, char **argv)
{
	struct serve_job job = {.in = STDIN_FILENO, .out = STDOUT_FILENO};
	const char *dir = NULL;
	const struct rlimit core = {CORE_LIMIT, CORE_LIMIT};
	cleanup_close int roots = -1;
	int status;

	job.limits = import_limits_default();
	status = parse_options(argc, argv, &dir, &job);
	if (status >= 0)
		return status;
	log_setup("millibox-import", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	(void)setrlimit(RLIMIT_CORE, &core);
	/* libarchive converts file names by the locale; this one preserves all bytes. */
	if (!setlocale(LC_CTYPE, "C.UTF-8") || sodium_init() < 0) {
		(void)fprintf(stderr, "millibox-import: needs the locale C.UTF-8 and libsodium\n");
		return 1;
	}
	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	roots = fd_open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (roots < 0) {
		(void)fprintf(stderr, "millibox-import: %s: %s\n", dir, strerror(-roots));
		return 1;
	}
	if (!job.name)
		return serve(roots, IMPORT_SOCKET_FD);
	return serve_one(roots, &job) < 0 ? 1 : 0;
}
