/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/dir_archive.h"
#include "cli/local_file.h"
#include "cli/message.h"
#include "cli/progress_bar.h"
#include "client/millibox.h"

/* A directory travels as a tar stream, a file as its bytes. */

#define SESSION_MAX 64

struct cp_options {
	struct common_options common;
	bool quiet;
};

/* One side of the copy. */
struct side {
	char *session; /* owned; NULL: local */
	const char *path;
};

struct copy {
	const struct cp_options *options;
	struct millibox_client *client;   /* owned */
	struct millibox_session *session; /* owned */
	int interrupt_fd;
	struct progress_bar bar;
};

/* "SESSION:PATH"; a local name with a colon is written "./a:b". */
static struct side side_of(const char *word)
{
	const char *colon = strchr(word, ':');
	struct side side = {.path = word};

	if (!colon)
		return side;
	side.session = xstrndup(word, (size_t)(colon - word));
	if (!id_is_valid(side.session, SESSION_MAX)) {
		free(side.session);
		side.session = NULL;
		return side;
	}
	side.path = colon + 1;
	return side;
}

/* Where @from lands: in a directory (trailing slash, or "") it keeps its name. Return: owned. */
static char *target_of(const char *from, const char *to)
{
	cleanup_free char *source = xstrdup(from);
	size_t len = strlen(source), to_len = strlen(to);
	const char *slash;

	while (len > 1 && source[len - 1] == '/')
		source[--len] = '\0';
	if (to_len > 0 && to[to_len - 1] != '/')
		return xstrdup(to);
	slash = strrchr(source, '/');
	return xasprintf("%s%s", to, slash ? slash + 1 : source);
}

/* For programs: what was copied. @session and @path are those of the session's side. */
static void print_copied(const struct copy *c, const struct side *remote, const char *path,
                         const char *local, const char *type)
{
	json_auto_t *object = json_pack("{s:s, s:s*, s:s*, s:s, s:I}", "session_id",
	                                remote->session, "path", path, "local_path", local, "type",
	                                type, "bytes", (json_int_t)c->bar.done);

	if (c->options->common.json)
		message_print_json(object);
}

static void on_progress(void *ctx, uint64_t bytes)
{
	struct progress_bar *bar = ctx;

	progress_bar_add(bar, bytes - bar->done);
}

static int refuse_copy(const struct copy *c, const json_t *problem)
{
	if (c->options->common.json)
		message_print_json(problem);
	else
		message_show_problem(problem);
	return exit_status_of_problem(problem);
}

static void start_bar(struct copy *c, const char *name, uint64_t size)
{
	progress_bar_start(&c->bar, name, size);
	c->bar.on = c->bar.on && !c->options->quiet;
	(void)millibox_set_progress(c->client, on_progress, &c->bar);
}

/* Of a transfer that returned @r. An interruption is no error. */
static int end_transfer(struct copy *c, int r, const char *name, struct error *err)
{
	json_auto_t *problem = r < 0 ? daemon_parse(millibox_error_json(c->client)) : NULL;
	int here = r < 0 ? daemon_failed_here(c->client) : 0;
	int signo;

	progress_bar_end(&c->bar);
	if (r == 0)
		return CLI_OK;
	if (problem)
		return refuse_copy(c, problem);
	signo = interrupt_taken(c->interrupt_fd);
	if (signo > 0)
		return CLI_SIGNAL + signo;
	return here ? error_set(err, ERR_SYSTEM, here, "copy '%s'", name)
	            : daemon_fail(c->client, err);
}

static int upload_file(struct copy *c, const struct side *from, const struct side *to,
                       const struct stat *st, struct error *err)
{
	cleanup_free char *target = target_of(from->path, to->path);
	cleanup_local_file struct local_file file = LOCAL_FILE_INIT;
	unsigned mode = st->st_mode & 0777;
	int status;

	if (local_file_read(from->path, &file, err) < 0)
		return -1;
	start_bar(c, from->path, (uint64_t)st->st_size);
	status = end_transfer(
		c,
		millibox_file_upload(c->session, target, file.fd, mode ? mode : MILLIBOX_MODE_NONE),
		from->path, err);
	if (status == CLI_OK)
		print_copied(c, to, target, from->path, "file");
	return status;
}

static int upload_dir(struct copy *c, const struct side *from, const struct side *to,
                      struct error *err)
{
	cleanup_free char *target = target_of(from->path, to->path);
	cleanup_dir_archive struct dir_archive archive = DIR_ARCHIVE_INIT;
	int status;

	if (dir_archive_pack(from->path, &archive, err) < 0)
		return -1;
	start_bar(c, from->path, 0);
	status = end_transfer(c, millibox_tree_upload(c->session, target, archive.fd), from->path,
	                      err);
	if (status == CLI_OK && dir_archive_end(&archive) < 0)
		return CLI_ERROR;
	if (status == CLI_OK)
		print_copied(c, to, target, from->path, "directory");
	return status;
}

static int upload(struct copy *c, const struct side *from, const struct side *to, struct error *err)
{
	struct stat st = {0};

	if (stat(from->path, &st) < 0)
		return error_set(err, ERR_INVALID, errno, "read '%s'", from->path);
	return S_ISDIR(st.st_mode) ? upload_dir(c, from, to, err)
	                           : upload_file(c, from, to, &st, err);
}

static bool is_local_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int download_file(struct copy *c, const struct side *from, const char *target, uint64_t size,
                         struct error *err)
{
	cleanup_local_file struct local_file file = LOCAL_FILE_INIT;
	int status;

	if (local_file_write(target, &file, err) < 0)
		return -1;
	start_bar(c, from->path, size);
	status = end_transfer(c, millibox_file_download(c->session, from->path, file.fd), target,
	                      err);
	if (status == CLI_OK && local_file_keep(&file, err) < 0)
		return -1;
	if (status == CLI_OK)
		print_copied(c, from, from->path, target, "file");
	return status;
}

static int download_dir(struct copy *c, const struct side *from, const char *target,
                        struct error *err)
{
	cleanup_dir_archive struct dir_archive archive = DIR_ARCHIVE_INIT;
	int status;

	if (dir_archive_unpack(target, false, &archive, err) < 0)
		return -1;
	start_bar(c, from->path, 0);
	status = end_transfer(c, millibox_tree_download(c->session, from->path, archive.fd), target,
	                      err);
	if (status == CLI_OK && dir_archive_end(&archive) < 0)
		return CLI_ERROR;
	if (status == CLI_OK)
		print_copied(c, from, from->path, target, "directory");
	return status;
}

static int download(struct copy *c, const struct side *from, const struct side *to,
                    struct error *err)
{
	cleanup_free char *dir = is_local_dir(to->path) ? xasprintf("%s/", to->path) : NULL;
	cleanup_free char *target = target_of(from->path, dir ? dir : to->path);
	json_auto_t *entry = NULL;
	int status = 0, r = millibox_file_stat(c->session, from->path, NULL);

	if (daemon_answer(c->client, r, &entry, &status, err) < 0)
		return -1;
	if (r < 0)
		return refuse_copy(c, entry);
	if (str_equal(message_text(entry, "type"), "directory"))
		return download_dir(c, from, target, err);
	return download_file(c, from, target,
	                     (uint64_t)json_integer_value(json_object_get(entry, "size")), err);
}

static int open_copy(struct copy *c, const char *session, struct error *err)
{
	c->interrupt_fd = interrupt_open(err);
	if (c->interrupt_fd < 0)
		return -1;
	c->client = daemon_open(&c->options->common.at);
	if (daemon_require(c->client, err) < 0 ||
	    daemon_session(c->client, session, &c->session, err) < 0)
		return -1;
	return millibox_cancel_on(c->client, c->interrupt_fd) < 0 ? daemon_fail(c->client, err) : 0;
}

static int copy_between(const struct cp_options *options, const struct side *from,
                        const struct side *to, struct error *err)
{
	struct copy c = {.options = options, .interrupt_fd = -1};
	int status;

	if (!from->session == !to->session)
		return error_set(err, ERR_INVALID, 0,
		                 "expected one local path and one in a session: SESSION:PATH");
	status = open_copy(&c, from->session ? from->session : to->session, err);
	if (status == 0)
		status = from->session ? download(&c, from, to, err) : upload(&c, from, to, err);
	millibox_session_free(c.session);
	millibox_client_free(c.client);
	(void)fd_close(c.interrupt_fd);
	return status;
}

static int run_cp(const void *values, const struct args *args, struct error *err)
{
	struct side from, to;
	int status;

	if (args->words_count != 2)
		return error_set(err, ERR_INVALID, 0, "expected a source and a target");
	from = side_of(args->words[0]);
	to = side_of(args->words[1]);
	status = copy_between(values, &from, &to, err);
	free(from.session);
	free(to.session);
	return status;
}

#define AT(member) offsetof(struct cp_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"quiet",     'q', OPTION_FLAG,    AT(quiet),       NULL, "show no progress"},
	{"recursive", 'r', OPTION_IGNORED, 0,               NULL, "accepted; directories are copied without it too"},
	{"json",      0,   OPTION_FLAG,    AT(common.json), NULL, "print what was copied as JSON; bytes of a directory are those of its archive"},
	ENDPOINT_ROWS(AT(common.at)),
};
/* clang-format on */

COMMAND(cp, "cp", "(PATH SESSION:PATH | SESSION:PATH PATH)",
        "Copy a file or a directory into or out of a session", run_cp, rows, struct cp_options,
        .text = "A target that ends with a slash is a directory: the source keeps its name in "
                "it. Otherwise a directory becomes the target. Links in a session's directory "
                "are copied as links, and nothing is written outside of the target.\n");
