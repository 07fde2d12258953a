/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/admin_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/local_file.h"
#include "cli/message.h"
#include "http/client.h"

/* Files that flow: as large as they are, no more than a piece of them is in memory. */

#define ANSWER_MAX (1u << 20) /* an object, not a content */

struct transfer_options {
	struct admin_options common;
	const char *tar, *mode;
	bool recursive;
};

struct transfer {
	const char *method;
	const char *path; /* borrowed */
	struct local_file *file;
	int interrupt_fd;
	int failure;     /* of the file here: negative errno */
	struct buf text; /* of an answer that is an object */
	bool download;
};

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct transfer *t = ctx;

	if (!t->download || status != 200)
		return buf_add(&t->text, data, len);
	t->failure = interrupt_write(t->interrupt_fd, t->file->fd, data, len);
	return t->failure;
}

static ssize_t on_body(void *ctx, char *data, size_t size)
{
	struct transfer *t = ctx;
	ssize_t n = interrupt_read(t->interrupt_fd, t->file->fd, data, size);

	if (n < 0)
		t->failure = (int)n;
	return n;
}

/* The request did not come to its end. An interruption is not an error to talk about. */
static int explain(const struct transfer *t, struct error *err)
{
	int signo = interrupt_taken(t->interrupt_fd);

	if (t->failure == -EPIPE)
		signo = SIGPIPE;
	if (signo > 0 || t->failure < 0)
		error_clear(err);
	if (signo > 0)
		return CLI_SIGNAL + signo;
	if (t->failure < 0)
		(void)error_set(err, ERR_SYSTEM, -t->failure, "%s '%s'",
		                t->download ? "write" : "read", t->file->name);
	return CLI_ERROR;
}

/* What the daemon said besides a content. */
static int report(struct transfer *t, int status, bool json, struct error *err)
{
	json_t *answer =
		json_loadb(t->text.data ? t->text.data : "", t->text.len, JSON_ALLOW_NUL, NULL);

	if (!json_is_object(answer)) {
		json_decref(answer);
		(void)error_set(err, ERR_PROTOCOL, 0,
		                "the answer (status %d) is not one of a Millibox daemon", status);
		return CLI_ERROR;
	}
	if (json)
		message_print_json(answer);
	else if (status >= 300)
		message_show_problem(answer);
	json_decref(answer);
	return status >= 300 ? CLI_ERROR : CLI_OK;
}

static int perform(struct transfer *t, const struct transfer_options *options, struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_free char *url = NULL;
	struct http_client_request request = {
		.method = t->method,
		.cancel_fd = t->interrupt_fd,
		.accept = "*/*",
		.on_data = on_data,
		.on_body = t->download ? NULL : on_body,
		.ctx = t,
	};
	int status = 0;

	if (api_endpoint(&options->common.at, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
	request.url = url = xasprintf("%s%s", endpoint.url, t->path);
	request.socket_path = endpoint.socket;
	request.bearer = endpoint.key;
	request.ca_file = endpoint.ca_file;
	request.untrusted = ENDPOINT_UNTRUSTED;
	request.unreached = ENDPOINT_UNREACHED;
	if (http_client_run(&request, &status, err) < 0)
		return explain(t, err);
	if (!t->download || status != 200)
		return report(t, status, options->common.json, err);
	return local_file_keep(t->file, err) < 0 ? CLI_ERROR : CLI_OK;
}

static int run_transfer(struct transfer *t, const struct transfer_options *options,
                        struct error *err)
{
	cleanup_close int interrupt_fd = interrupt_open();
	int status;

	if (interrupt_fd < 0) {
		(void)error_set(err, ERR_SYSTEM, -interrupt_fd, "make a signal descriptor");
		return CLI_ERROR;
	}
	t->interrupt_fd = interrupt_fd;
	buf_init(&t->text, ANSWER_MAX);
	status = perform(t, options, err);
	buf_done(&t->text);
	return status;
}

static int run_get(const void *values, const struct args *args, struct error *err)
{
	const struct transfer_options *options = values;
	cleanup_local_file struct local_file file = LOCAL_FILE_INIT;
	struct transfer t = {.method = "GET", .file = &file, .download = true};
	const char *name = args->words_count == 3 ? args->words[2] : "-";
	cleanup_free char *path = NULL;

	if (args->words_count < 2 || args->words_count > 3) {
		(void)error_set(err, ERR_INVALID, 0, "give a session, a path in it, and a file");
		return CLI_USAGE;
	}
	if (options->recursive && str_equal(name, "-") && isatty(STDOUT_FILENO)) {
		(void)error_set(err, ERR_INVALID, 0, "an archive is nothing for a terminal");
		return CLI_USAGE;
	}
	t.path = path = api_file_path(args->words[0], args->words[1],
	                              options->recursive ? "?format=tar" : "", err);
	if (!path || local_file_write(name, &file, err) < 0)
		return CLI_USAGE;
	return run_transfer(&t, options, err);
}

/* The path in the session: below a directory, that ends with a slash, the file keeps its name. */
static char *target_of(const char *file, const char *path, struct error *err)
{
	const char *slash = strrchr(file, '/');
	size_t len = strlen(path);

	if (len > 0 && path[len - 1] != '/')
		return xstrdup(path);
	if (!str_equal(file, "-"))
		return xasprintf("%s%s", path, slash ? slash + 1 : file);
	(void)error_set(err, ERR_INVALID, 0, "standard input has no name: give a path with one");
	return NULL;
}

static char *put_path(const struct transfer_options *options, const struct args *args,
                      struct error *err)
{
	cleanup_free char *mode = options->mode ? api_escape(options->mode) : NULL;
	cleanup_free char *query = options->tar ? xstrdup("?format=tar")
	                           : mode       ? xasprintf("?mode=%s", mode)
	                                        : xstrdup("");
	cleanup_free char *target = NULL;

	if (args->words_count != (options->tar ? 2u : 3u))
		(void)error_set(err, ERR_INVALID, 0,
		                "give a session, a file and a path for it; or with --tar a session "
		                "and a directory in it");
	else if (options->tar && options->mode)
		(void)error_set(err, ERR_INVALID, 0, "--mode: an archive has its own");
	else
		target = options->tar ? xstrdup(args->words[1])
		                      : target_of(args->words[1], args->words[2], err);
	return target ? api_file_path(args->words[0], target, query, err) : NULL;
}

static int run_put(const void *values, const struct args *args, struct error *err)
{
	const struct transfer_options *options = values;
	cleanup_local_file struct local_file file = LOCAL_FILE_INIT;
	cleanup_free char *path = put_path(options, args, err);
	struct transfer t = {.method = "PUT", .path = path, .file = &file};

	if (!path || local_file_read(options->tar ? options->tar : args->words[1], &file, err) < 0)
		return CLI_USAGE;
	return run_transfer(&t, options, err);
}

#define AT(member) offsetof(struct transfer_options, member)

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row get_rows[] = {
	{"recursive", 'r', OPTION_FLAG, AT(recursive),     NULL,   "a directory with all that is in it, as a tar archive"},
	ENDPOINT_ROWS(AT(common.at)),
};
static const struct option_row put_rows[] = {
	{"tar",  0,   OPTION_TEXT, AT(tar),  "FILE", "unpack this tar archive into a directory; '-': standard input"},
	{"mode", 'm', OPTION_TEXT, AT(mode), "MODE", "octal permissions of the file; default: 0644"},
	ADMIN_ROWS(AT),
};
/* clang-format on */

const struct command command_file_get = {
	.name = "file get",
	.arguments = "SESSION PATH [FILE]",
	.summary = "Copy a file out of a session",
	.text = "Without FILE, or with '-', it goes to standard output.\n",
	.options = {get_rows, ARRAY_SIZE(get_rows)},
	.values_size = sizeof(struct transfer_options),
	.run = run_get,
};

const struct command command_file_put = {
	.name = "file put",
	.arguments = "SESSION (FILE PATH | --tar FILE DIRECTORY)",
	.summary = "Copy a file into a session",
	.text = "FILE '-' is standard input. A PATH that ends with a slash is a directory for the "
		"file.\n",
	.options = {put_rows, ARRAY_SIZE(put_rows)},
	.values_size = sizeof(struct transfer_options),
	.run = run_put,
};
