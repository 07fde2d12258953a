/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client/api_call.h"
#include "cli/client/file_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/local_file.h"
#include "cli/message.h"

/* Files are streamed. */

struct transfer_options {
	struct common_options common;
	const char *tar, *mode;
	bool recursive;
};

/* An interruption is no error. */
static int report_failure(const struct file_call *call, const struct local_file *file,
                          struct error *err)
{
	int signo = call->failure == -EPIPE ? SIGPIPE : interrupt_taken(call->interrupt_fd);

	if (signo > 0 || call->failure < 0)
		error_clear(err);
	if (signo > 0)
		return CLI_SIGNAL + signo;
	if (call->failure < 0)
		(void)error_set(err, ERR_SYSTEM, -call->failure, "%s '%s'",
		                call->download ? "write" : "read", file->name);
	return CLI_ERROR;
}

static int run_transfer(struct file_call *call, struct local_file *file,
                        const struct common_options *common, struct error *err)
{
	cleanup_close int interrupt_fd = interrupt_open(err);
	cleanup_endpoint struct endpoint endpoint = {0};
	json_auto_t *answer = NULL;
	int status = 0;

	if (interrupt_fd < 0 || api_endpoint(&common->at, &endpoint, err) < 0)
		return -1;
	call->fd = file->fd;
	call->interrupt_fd = interrupt_fd;
	if (file_call_run(call, &endpoint, &answer, &status, err) < 0)
		return report_failure(call, file, err);
	if (!answer)
		return local_file_keep(file, err) < 0 ? CLI_ERROR : CLI_OK;
	if (common->json)
		message_print_json(answer);
	else if (status >= 300)
		message_show_problem(answer);
	return status >= 300 ? exit_status_of_problem(answer) : CLI_OK;
}

static int run_get(const void *values, const struct args *args, struct error *err)
{
	const struct transfer_options *options = values;
	cleanup_local_file struct local_file file = LOCAL_FILE_INIT;
	struct file_call call = {.download = true};
	const char *name = args->words_count == 3 ? args->words[2] : "-";
	cleanup_free char *path = NULL;

	if (args->words_count < 2 || args->words_count > 3)
		return error_set(err, ERR_INVALID, 0,
		                 "expected a session, a path in it, and at most one file");
	if (options->recursive && str_equal(name, "-") && isatty(STDOUT_FILENO))
		return error_set(err, ERR_INVALID, 0, "cannot write an archive to a terminal");
	call.path = path = api_file_path(args->words[0], args->words[1],
	                                 options->recursive ? "?format=tar" : "", err);
	if (!path || local_file_write(name, &file, err) < 0)
		return -1;
	return run_transfer(&call, &file, &options->common, err);
}

/* In a directory (trailing slash) the file keeps its name. Return: owned, or NULL. */
static char *target_path(const char *file, const char *path, struct error *err)
{
	const char *slash = strrchr(file, '/');
	size_t len = strlen(path);

	if (len > 0 && path[len - 1] != '/')
		return xstrdup(path);
	if (!str_equal(file, "-"))
		return xasprintf("%s%s", path, slash ? slash + 1 : file);
	(void)error_set(err, ERR_INVALID, 0, "standard input has no name: give a full path");
	return NULL;
}

static char *upload_path(const struct transfer_options *options, const struct args *args,
                         struct error *err)
{
	cleanup_free char *mode = options->mode ? api_escape(options->mode) : NULL;
	cleanup_free char *query = options->tar ? xstrdup("?format=tar")
	                           : mode       ? xasprintf("?mode=%s", mode)
	                                        : xstrdup("");
	cleanup_free char *target = NULL;

	if (args->words_count != (options->tar ? 2u : 3u))
		(void)error_set(err, ERR_INVALID, 0,
		                "expected a session, a file and a path for it; or with --tar a "
		                "session and a directory in it");
	else if (options->tar && options->mode)
		(void)error_set(err, ERR_INVALID, 0, "--mode cannot be combined with --tar");
	else
		target = options->tar ? xstrdup(args->words[1])
		                      : target_path(args->words[1], args->words[2], err);
	return target ? api_file_path(args->words[0], target, query, err) : NULL;
}

static int run_put(const void *values, const struct args *args, struct error *err)
{
	const struct transfer_options *options = values;
	cleanup_local_file struct local_file file = LOCAL_FILE_INIT;
	cleanup_free char *path = upload_path(options, args, err);
	struct file_call call = {.path = path};

	if (!path || local_file_read(options->tar ? options->tar : args->words[1], &file, err) < 0)
		return -1;
	return run_transfer(&call, &file, &options->common, err);
}

#define AT(member) offsetof(struct transfer_options, member)

/* clang-format off */
static const struct option_row get_rows[] = {
	{"recursive", 'r', OPTION_FLAG, AT(recursive),     NULL,   "copy a directory tree as a tar archive"},
	ENDPOINT_ROWS(AT(common.at)),
};
static const struct option_row put_rows[] = {
	{"tar",  0,   OPTION_TEXT, AT(tar),  "FILE", "extract this tar archive into a directory; '-': standard input"},
	{"mode", 'm', OPTION_TEXT, AT(mode), "MODE", "permissions of the file, octal; default: 0644"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(file_get, "file get", "SESSION PATH [FILE]", "Copy a file out of a session", run_get,
        get_rows, struct transfer_options,
        .text = "Without FILE, or with '-', the file is written to standard output.\n");
COMMAND(file_put, "file put", "SESSION (FILE PATH | --tar FILE DIRECTORY)",
        "Copy a file into a session", run_put, put_rows, struct transfer_options,
        .text = "FILE '-' is standard input. If PATH ends with a slash, it is a directory.\n");
