/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/local_file.h"
#include "cli/resource.h"
#include "client/millibox.h"

/* Files are streamed. */

#define MODE_LEN 4

struct transfer_options {
	struct common_options common;
	const char *tar, *mode;
	bool recursive;
};

struct transfer {
	const struct transfer_options *options;
	struct millibox_client *client;   /* owned */
	struct millibox_session *session; /* owned */
	struct local_file file;
	int interrupt_fd;
};

static int open_transfer(struct transfer *t, const char *id, struct error *err)
{
	t->client = daemon_open(&t->options->common.at);
	if (daemon_session(t->client, id, &t->session, err) < 0)
		return -1;
	t->interrupt_fd = interrupt_open(err);
	if (t->interrupt_fd < 0 || daemon_require(t->client, err) < 0)
		return -1;
	return millibox_cancel_on(t->client, t->interrupt_fd) < 0 ? daemon_fail(t->client, err) : 0;
}

static void close_transfer(struct transfer *t)
{
	local_file_done(&t->file);
	millibox_session_free(t->session);
	millibox_client_free(t->client);
	(void)fd_close(t->interrupt_fd);
}

/* An interruption is no error. */
static int report_failure(const struct transfer *t, const char *verb, struct error *err)
{
	int here = daemon_failed_here(t->client);
	int signo = here == EPIPE ? SIGPIPE : interrupt_taken(t->interrupt_fd);

	if (signo > 0)
		return CLI_SIGNAL + signo;
	if (here)
		(void)error_set(err, ERR_SYSTEM, here, "%s '%s'", verb, t->file.name);
	else
		(void)daemon_fail(t->client, err);
	return CLI_ERROR;
}

/* Of a call that returned @r. */
static int end_transfer(struct transfer *t, int r, const char *verb, struct error *err)
{
	json_auto_t *answer = NULL;

	if (r < 0 && !millibox_error_json(t->client))
		return report_failure(t, verb, err);
	if (r == 0 && !millibox_answer(t->client))
		return local_file_keep(&t->file, err) < 0 ? CLI_ERROR : CLI_OK;
	return resource_finish(&t->options->common, t->client, r, &answer, err);
}

struct get_command {
	size_t words_max;
	const char *expected;
};

static int run_get(const void *values, const struct args *args, struct error *err)
{
	const struct transfer_options *options = values;
	const struct get_command *command = args->data;
	struct transfer t = {.options = options, .file = LOCAL_FILE_INIT, .interrupt_fd = -1};
	const char *name = args->words_count == 3 ? args->words[2] : "-";
	int status = -1;

	if (args->words_count < 2 || args->words_count > command->words_max)
		return error_set(err, ERR_INVALID, 0, "expected %s", command->expected);
	if (options->recursive && str_equal(name, "-") && isatty(STDOUT_FILENO))
		return error_set(err, ERR_INVALID, 0, "cannot write an archive to a terminal");
	if (open_transfer(&t, args->words[0], err) == 0 &&
	    local_file_write(name, &t.file, err) == 0)
		status = end_transfer(
			&t,
			(options->recursive ? millibox_tree_download : millibox_file_download)(
				t.session, args->words[1], t.file.fd),
			"write", err);
	close_transfer(&t);
	return status;
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

/* Of --mode, octal; 0: not given. Return: 0, or -1 (ERR_INVALID). */
static int parse_mode(const char *text, unsigned *ret_mode, struct error *err)
{
	size_t len = text ? strlen(text) : 0;
	unsigned mode = 0;

	*ret_mode = 0;
	if (!text)
		return 0;
	if (len == 0 || len > MODE_LEN || text[strspn(text, "01234567")] != '\0')
		return error_set(err, ERR_INVALID, 0,
		                 "--mode: '%s' is not octal permissions such as 0644", text);
	for (; *text; text++)
		mode = mode * 8 + (unsigned)(*text - '0');
	*ret_mode = mode ? mode : MILLIBOX_MODE_NONE;
	return 0;
}

/* Where the upload lands. Return: owned, or NULL (ERR_INVALID). */
static char *upload_path(const struct transfer_options *options, const struct args *args,
                         struct error *err)
{
	if (args->words_count != 2 && (options->tar || args->words_count != 3))
		(void)error_set(err, ERR_INVALID, 0,
		                "expected a session, a file, and perhaps a path for it; or with "
		                "--tar a session and a directory in it");
	else if (options->tar && options->mode)
		(void)error_set(err, ERR_INVALID, 0, "--mode cannot be combined with --tar");
	else
		return options->tar
		               ? xstrdup(args->words[1])
		               : target_path(args->words[1],
		                             args->words_count == 3 ? args->words[2] : "", err);
	return NULL;
}

static int run_put(const void *values, const struct args *args, struct error *err)
{
	const struct transfer_options *options = values;
	struct transfer t = {.options = options, .file = LOCAL_FILE_INIT, .interrupt_fd = -1};
	cleanup_free char *path = upload_path(options, args, err);
	unsigned mode = 0;
	int status = -1, r;

	if (!path || parse_mode(options->mode, &mode, err) < 0)
		return -1;
	if (open_transfer(&t, args->words[0], err) == 0 &&
	    local_file_read(options->tar ? options->tar : args->words[1], &t.file, err) == 0) {
		r = options->tar ? millibox_tree_upload(t.session, path, t.file.fd)
		                 : millibox_file_upload(t.session, path, t.file.fd, mode);
		status = end_transfer(&t, r, "read", err);
	}
	close_transfer(&t);
	return status;
}

#define AT(member) offsetof(struct transfer_options, member)

/* clang-format off */
static const struct option_row cat_rows[] = {ENDPOINT_ROWS(AT(common.at))};
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

COMMAND(file_cat, "file cat", "SESSION PATH", "Print a file of a session", run_get, cat_rows,
        struct transfer_options,
        .data = &(const struct get_command){2, "a session and a path in it"});
COMMAND(file_get, "file get", "SESSION PATH [FILE]", "Copy a file out of a session", run_get,
        get_rows, struct transfer_options,
        .data = &(const struct get_command){3, "a session, a path in it, and at most one file"},
        .text = "Without FILE, or with '-', the file is written to standard output.\n");
COMMAND(file_put, "file put", "SESSION (FILE [PATH] | --tar FILE DIRECTORY)",
        "Copy a file into a session", run_put, put_rows, struct transfer_options,
        .text = "FILE '-' is standard input. If PATH ends with a slash, it is a directory; "
                "without it the file keeps its name.\n");
