/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/dir_archive.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "cli/own_session.h"
#include "cli/run_request.h"
#include "cli/run_send.h"
#include "cli/start_daemon.h"
#include "cli/tree_diff.h"
#include "cli/tree_entry.h"
#include "client/millibox.h"

/*
 * Theory of operation. The directory is copied to a private place first ("before"): that is what
 * the program gets, and what its result is compared with. The program runs in a session of its own;
 * its workspace comes back as "after", and the session ends before anything is compared or applied:
 * nothing of it can change what was shown.
 */

#define COPY_BLOCK 65536

struct dir_run {
	const struct run_options *options;
	struct millibox_client *client;   /* owned */
	struct millibox_session *session; /* owned; NULL: none */
	int interrupt_fd;
	char *place;          /* owned: the private directory; NULL: none */
	char *before, *after; /* owned paths in it */
};

static int make_place(struct dir_run *d, struct error *err)
{
	const char *tmp = getenv("TMPDIR");
	char *place = xasprintf("%s/millibox-dir-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");

	if (!mkdtemp(place)) {
		free(place);
		return error_set(err, ERR_SYSTEM, errno, "make a temporary directory");
	}
	d->place = place;
	d->before = xasprintf("%s/before", place);
	d->after = xasprintf("%s/after", place);
	return 0;
}

/* rm: trees of a box may be deeper than what we list. */
static void remove_place(struct dir_run *d)
{
	pid_t pid = d->place ? fork() : -1;

	if (pid == 0) {
		(void)execl("/bin/rm", "rm", "-rf", "--", d->place, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(d->place);
	free(d->before);
	free(d->after);
}

static int copy_stream(int from, int to)
{
	char data[COPY_BLOCK];
	ssize_t n;

	while ((n = read(from, data, sizeof(data))) > 0)
		if (fd_write_all(to, data, (size_t)n) < 0)
			return -errno;
	return n < 0 ? -errno : 0;
}

static int copy_before(struct dir_run *d, struct error *err)
{
	cleanup_dir_archive struct dir_archive from = DIR_ARCHIVE_INIT, to = DIR_ARCHIVE_INIT;

	if (dir_archive_pack(d->options->dir, &from, err) < 0 ||
	    dir_archive_unpack(d->before, true, &to, err) < 0)
		return -1;
	if (copy_stream(from.fd, to.fd) < 0 || dir_archive_end(&from) < 0 ||
	    dir_archive_end(&to) < 0)
		return error_set(err, ERR_SYSTEM, 0, "copy '%s'", d->options->dir);
	return 0;
}

static int open_session(struct dir_run *d, struct error *err)
{
	const struct run_options options = own_session_options(d->options);

	return own_session_create(d->client, &options, &d->session, err);
}

static void close_session(struct dir_run *d)
{
	own_session_delete(d->client, d->session);
	d->session = NULL;
}

/* The workspace as a tar stream, in or out. */
static int transfer(struct dir_run *d, struct dir_archive *archive, bool download,
                    struct error *err)
{
	json_auto_t *problem = NULL;
	int r, signo;

	(void)millibox_cancel_on(d->client, d->interrupt_fd);
	r = (download ? millibox_tree_download : millibox_tree_upload)(d->session, "", archive->fd);
	if (r < 0 && !millibox_error_json(d->client))
		(void)daemon_fail(d->client, err);
	problem = daemon_parse(millibox_error_json(d->client));
	/* The end of the session is not to be interrupted. */
	(void)millibox_cancel_on(d->client, -1);
	if (problem) {
		message_show_problem(problem);
		return exit_status_of_problem(problem);
	}
	if (r == 0)
		return dir_archive_end(archive) < 0 ? CLI_ERROR : CLI_OK;
	signo = interrupt_taken(d->interrupt_fd);
	if (signo > 0)
		error_clear(err);
	return signo > 0 ? CLI_SIGNAL + signo : -1;
}

static int send_dir(struct dir_run *d, struct error *err)
{
	cleanup_dir_archive struct dir_archive archive = DIR_ARCHIVE_INIT;

	return dir_archive_pack(d->before, &archive, err) < 0 ? -1
	                                                      : transfer(d, &archive, false, err);
}

static int fetch_dir(struct dir_run *d, struct error *err)
{
	cleanup_dir_archive struct dir_archive archive = DIR_ARCHIVE_INIT;

	return dir_archive_unpack(d->after, true, &archive, err) < 0
	               ? -1
	               : transfer(d, &archive, true, err);
}

/* *ret_ran: the program ended by itself or by a limit: its files can be shown. */
static int execute(struct dir_run *d, struct millibox_request *request, bool *ret_ran,
                   struct error *err)
{
	const struct run_send what = {.request = request, .json = d->options->json};
	cleanup_exec_call struct exec_call call = {0};
	int status;

	exec_call_init(&call, d->interrupt_fd, d->options->json);
	status = run_send_to(&what, d->client, d->session, &call, err);
	*ret_ran = call.result;
	return status;
}

/* What the letter and the path do not say. Nothing of a link: it has no permissions. */
static void print_remark(const struct tree_change *c)
{
	mode_t old = c->old_mode & TREE_PERMISSIONS, new = c->new_mode &TREE_PERMISSIONS;
	const char *between = c->risk ? "; " : "";
	char modes[32] = "";

	if (c->kind == TREE_CHANGED && old != new && !S_ISLNK(c->old_mode) && !S_ISLNK(c->new_mode))
		(void)snprintf(modes, sizeof(modes), "mode %03o -> %03o%s", old, new, between);
	else if (c->kind == TREE_ADDED && S_ISREG(c->new_mode) && new & 0111)
		(void)snprintf(modes, sizeof(modes), "mode %03o%s", new, between);
	if (modes[0] || c->risk)
		(void)printf(" (%s%s)", modes, c->risk ? c->risk : "");
}

static void print_changes(const struct tree_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++) {
		const struct tree_change *c = &changes->list[i];

		(void)printf("%c ", tree_letter(c->kind));
		message_print_safe(stdout, c->path);
		(void)fputs(S_ISDIR(c->new_mode ? c->new_mode : c->old_mode) ? "/" : "", stdout);
		print_remark(c);
		(void)putchar('\n');
	}
}

/* Control characters of hostile files must not reach a terminal. */
static void print_stream_safe(int fd)
{
	char data[COPY_BLOCK];
	size_t kept = 0;
	ssize_t n;

	while ((n = read(fd, data + kept, sizeof(data) - kept)) > 0) {
		size_t len = kept + (size_t)n, whole = utf8_cut(data, len);

		message_print_block(stdout, data, whole);
		kept = len - whole; /* the start of a character */
		memmove(data, data + whole, kept);
	}
	message_print_block(stdout, data, kept);
}

static void print_diff(const struct dir_run *d)
{
	/* Else the bytes are for a file or a program such as patch. */
	bool is_terminal = isatty(STDOUT_FILENO) == 1;
	int pipe[2] = {-1, -1};
	pid_t pid;

	if (is_terminal && fd_pipe(pipe, 0) < 0)
		return;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (chdir(d->place) == 0 && (!is_terminal || dup2(pipe[1], STDOUT_FILENO) >= 0))
			(void)execl("/usr/bin/diff", "diff", "-ruN", "--no-dereference", "before",
			            "after", (char *)NULL);
		_exit(127);
	}
	(void)fd_close(pipe[1]);
	if (is_terminal)
		print_stream_safe(pipe[0]);
	(void)fd_close(pipe[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Return: CLI_OK, or CLI_FAILED: something was not applied, with a message. */
static int apply_changes(const struct dir_run *d, int before, int after,
                         const struct tree_changes *changes, struct error *err)
{
	const struct tree_wishes wishes = {.risky = d->options->apply_risky,
	                                   .modes = d->options->apply_modes};
	cleanup_close int target = fd_open(d->options->dir, O_RDONLY | O_DIRECTORY, 0);
	bool is_kept = false;
	int status = CLI_OK;

	if (target < 0)
		return error_set(err, ERR_INVALID, -target, "open '%s'", d->options->dir);
	for (size_t i = 0; i < changes->count; i++) {
		const struct tree_change *c = &changes->list[i];
		const char *reason = tree_apply(target, before, after, c, &wishes);

		if (!reason)
			continue;
		message_show("not applied: %s: %s", c->path, reason);
		is_kept = is_kept || reason == c->risk;
		status = CLI_FAILED;
	}
	if (is_kept)
		message_show("read what programs would run; --apply-risky applies it too");
	return status;
}

static int show_and_apply(const struct dir_run *d, struct error *err)
{
	cleanup_close int before = fd_open(d->before, O_RDONLY | O_DIRECTORY, 0);
	cleanup_close int after = fd_open(d->after, O_RDONLY | O_DIRECTORY, 0);
	cleanup_tree_changes struct tree_changes changes = {0};

	if (before < 0 || after < 0)
		return error_set(err, ERR_SYSTEM, before < 0 ? -before : -after, "compare");
	if (tree_diff(before, after, &changes, err) < 0)
		return -1;
	print_changes(&changes);
	if (d->options->diff)
		print_diff(d);
	return d->options->apply ? apply_changes(d, before, after, &changes, err) : CLI_OK;
}

/* Return: as the program's; what cannot be shown or applied is a failure of its own. */
static int run_in_session(struct dir_run *d, struct millibox_request *request, struct error *err)
{
	bool shows = d->options->diff || d->options->apply, ran = false;
	int status, shown = CLI_OK;

	status = open_session(d, err);
	if (status == CLI_OK)
		status = send_dir(d, err);
	if (status == CLI_OK)
		status = execute(d, request, &ran, err);
	if (ran && shows)
		shown = fetch_dir(d, err);
	close_session(d);
	if (ran && shows && shown == CLI_OK)
		shown = show_and_apply(d, err);
	return shown != CLI_OK ? shown : status;
}

int run_dir(const struct run_options *options, const struct run_input *input,
            const struct args *args, struct error *err)
{
	struct dir_run d = {.options = options, .interrupt_fd = -1};
	struct run_options inside = own_session_program(options);
	cleanup_request struct millibox_request *request = NULL;
	struct own_daemon *own = NULL;
	int status = -1;

	request = run_request_build(&inside, input, args, err);
	d.interrupt_fd = request ? interrupt_open(err) : -1;
	d.client = daemon_open(&options->at);
	if (d.interrupt_fd >= 0 &&
	    start_daemon_find(&options->at, d.client, d.interrupt_fd, &own, err) < 0)
		status = exit_status_of_failure(d.interrupt_fd, err);
	else if (d.interrupt_fd >= 0 && make_place(&d, err) == 0 && copy_before(&d, err) == 0)
		status = run_in_session(&d, request, err);
	remove_place(&d);
	own_daemon_end(own);
	millibox_client_free(d.client);
	(void)fd_close(d.interrupt_fd);
	return status;
}
