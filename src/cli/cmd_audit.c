/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "chain/chain.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "client/millibox.h"
#include "db/db.h"
#include "http/status.h"

/*
 * Both commands read files, and ask the daemon only where they are: it must not vouch for its own
 * log. A log is rotated files,
 * named after their last record's number, and the current file; one hash chain runs through all.
 * Two places outside record its end: the head file beside it, and the anchor in the daemon's
 * database.
 */

#define LOG_NAME     "audit.log"
#define HEAD_SUFFIX  ".head"
#define SUFFIX_LEN   20
#define FILES_MAX    65536
#define TAIL_DEFAULT 10
#define DATABASE     "millibox.db"
#define ANCHOR_MAX   65536

struct audit_options {
	struct daemon_options at;
	bool follow;          /* tail */
	uint64_t lines;       /* tail */
	const char *database; /* verify */
	bool json;            /* verify */
};

/* Recorded ends of a log. */
struct ends {
	struct chain_head head, anchor;
	bool has_head, has_anchor;
};

/* Of a daemon that this user would start. Return: owned. */
static char *default_path(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return xstrdup("/var/lib/millibox/" LOG_NAME);
	if (state && state[0] == '/')
		return xasprintf("%s/millibox/" LOG_NAME, state);
	return xasprintf("%s/.local/state/millibox/" LOG_NAME, home ? home : "");
}

/* Of the daemon, on this host. Return: owned, or NULL with *err. */
static char *ask_path(struct millibox_client *client, struct error *err)
{
	const struct daemon_call call = {.method = "GET", .path = "/api/v1/audit"};
	json_auto_t *answer = NULL;
	const char *path;
	int status = 0;

	if (daemon_ask(client, &call, &answer, &status, err) < 0)
		return NULL;
	path = message_text(answer, "path");
	if (status == HTTP_OK && *path)
		return xstrdup(path);
	if (status == HTTP_OK)
		(void)error_set(err, ERR_CONFIG, 0, "this daemon has no audit log (audit.enabled)");
	else
		(void)error_set(
			err, ERR_DENIED, 0,
			"the daemon does not name its audit log (%s); give the file, or the "
			"daemon's Unix socket (--socket)",
			message_text(answer, "error_detail"));
	return NULL;
}

/* FILE, else that of the daemon, else the default. Return: owned, or NULL with *err. */
static char *log_path(const struct audit_options *options, const struct args *args,
                      struct error *err)
{
	cleanup_daemon struct millibox_client *client = daemon_open(&options->at);
	int found;

	if (args->words_count > 0)
		return xstrdup(args->words[0]);
	found = millibox_find(client, NULL);
	if (found < 0)
		(void)daemon_fail(client, err);
	return found < 0 ? NULL : found ? ask_path(client, err) : default_path();
}

static int check_words(const struct args *args, struct error *err)
{
	if (args->words_count > 1)
		return error_set(err, ERR_INVALID, 0, "unexpected argument '%s'", args->words[1]);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Rotated files, oldest first, then the current one. Return: owned. */
static char **find_files(const char *path)
{
	cleanup_free char *copy = xstrdup(path);
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *folder = dirname(copy);
	char **list = xcalloc(FILES_MAX + 2, sizeof(*list));
	int fd = fd_open(folder, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	size_t count = 0, len = strlen(base);

	while (dir && count < FILES_MAX && (entry = readdir(dir))) {
		const char *suffix = entry->d_name + len + 1;

		if (strncmp(entry->d_name, base, len) == 0 && entry->d_name[len] == '.' &&
		    strspn(suffix, "0123456789") == SUFFIX_LEN && !suffix[SUFFIX_LEN])
			list[count++] = xasprintf("%s/%s", folder, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	qsort(list, count, sizeof(*list), by_name);
	list[count] = xstrdup(path);
	return list;
}

/* Return: 0, 1: no head file, or an empty one, or -1. */
static int read_head(const char *path, struct chain_head *ret_head, struct error *err)
{
	cleanup_free char *name = xasprintf("%s%s", path, HEAD_SUFFIX);
	cleanup_close int fd = fd_open(name, O_RDONLY, 0);
	char text[CHAIN_HEAD_LEN + 1];
	ssize_t n;

	if (fd == -ENOENT)
		return 1;
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "open %s", name);
	n = fd_read_all(fd, text, sizeof(text));
	if (n == 0) /* nothing was settled yet */
		return 1;
	if (n < 0 || chain_head_parse(text, (size_t)n, ret_head) < 0)
		return error_set(err, ERR_INVALID, 0, "%s: %s", name,
		                 chain_fault_text(CHAIN_BAD_HEAD));
	return 0;
}

/* Return: 0, also without an anchor of this log, or -1. */
static int read_anchor(const char *database, const char *path, struct ends *ret_ends,
                       struct error *err)
{
	cleanup_free char *real = realpath(path, NULL);
	cleanup_db_rows struct db_rows *rows = NULL;
	const char *text;

	if (db_readonly_query(
		    database,
		    &DB_SQL("SELECT head FROM audit WHERE path = ?1", DB_TEXT(real ? real : path)),
		    ANCHOR_MAX, &rows, err) < 0)
		return error_wrap(err, "read the anchor of the log");
	if (db_rows_count(rows) == 0)
		return 0;
	text = db_rows_text(rows, 0, 0);
	if (!text || chain_head_parse(text, strlen(text), &ret_ends->anchor) < 0)
		return error_set(err, ERR_INVALID, 0, "%s: the anchor of the log is corrupt",
		                 database);
	ret_ends->has_anchor = true;
	return 0;
}

/* Default: the database beside the log, if any. */
static int find_anchor(const char *named, const char *path, struct ends *ret_ends,
                       struct error *err)
{
	cleanup_free char *copy = xstrdup(path);
	cleanup_free char *beside = xasprintf("%s/" DATABASE, dirname(copy));

	if (!named && access(beside, F_OK) < 0)
		return 0;
	if (read_anchor(named ? named : beside, path, ret_ends, err) < 0)
		return -1;
	if (named && !ret_ends->has_anchor)
		return error_set(err, ERR_INVALID, 0, "%s has no anchor of the log %s", named,
		                 path);
	return 0;
}

#define NO_END "no head file and no anchor: records may be missing at the end"

/* A chain that was cut is still a chain. */
static bool is_end_proved(const struct ends *ends)
{
	return ends->has_head || ends->has_anchor;
}

static void print_verification_json(const struct chain_verdict *v, const char *bad,
                                    const struct ends *ends)
{
	bool whole = v->fault == CHAIN_FINE, intact = whole && is_end_proved(ends);
	char head[CHAIN_HEAD_LEN + 1] = "";
	json_auto_t *object = json_pack("{s:b}", "intact", intact);

	chain_head_print(&v->head, head);
	head[strcspn(head, "\n")] = '\0';
	if (whole)
		(void)json_object_update_new(
			object,
			json_pack("{s:I, s:I, s:I, s:s, s:b}", "records", (json_int_t)v->records,
		                  "first_record", (json_int_t)v->first_seq, "last_record",
		                  (json_int_t)v->head.seq, "head", head, "end_is_proved", intact));
	else
		(void)json_object_update_new(object,
		                             json_pack("{s:s, s:s, s:I, s:I}", "file", bad, "fault",
		                                       chain_fault_text(v->fault), "line",
		                                       (json_int_t)v->bad_line, "record",
		                                       (json_int_t)v->head.seq + 1));
	if (whole && !intact)
		(void)json_object_set_new(object, "fault", json_string(NO_END));
	if (ends->has_anchor)
		(void)json_object_set_new(object, "anchor",
		                          json_integer((json_int_t)ends->anchor.seq));
	message_print_json(object);
}

static int print_verification(const struct chain_verdict *v, const char *bad,
                              const struct ends *ends)
{
	char head[CHAIN_HEAD_LEN + 1];

	if (v->fault != CHAIN_FINE) {
		(void)printf("%s: NOT intact", bad);
		if (v->bad_line > 0)
			(void)printf(": line %" PRIu64 " (record %" PRIu64 ")", v->bad_line,
			             v->head.seq + 1);
		(void)printf(": %s\n", chain_fault_text(v->fault));
		return CLI_FAILED;
	}
	chain_head_print(&v->head, head);
	(void)printf("%s: %" PRIu64 " records, %" PRIu64 " to %" PRIu64 "\nhead: %s",
	             is_end_proved(ends) ? "intact" : "NOT proved to be intact", v->records,
	             v->first_seq, v->head.seq, head);
	if (v->first_seq > 1)
		(void)printf("older records are not present: the first is %" PRIu64 "\n",
		             v->first_seq);
	if (ends->has_anchor)
		(void)printf("anchor: record %" PRIu64 ", in the database\n", ends->anchor.seq);
	if (is_end_proved(ends))
		return CLI_OK;
	(void)puts(NO_END);
	return CLI_FAILED;
}

static int run_verify(const void *values, const struct args *args, struct error *err)
{
	const struct audit_options *options = values;
	cleanup_free char *path = NULL;
	const char *last = NULL;
	cleanup_str_list char **files = NULL;
	struct chain_verdict verdict = {0};
	struct ends ends = {0};
	int no_head;

	if (check_words(args, err) < 0)
		return -1;
	path = log_path(options, args, err);
	if (!path)
		return -1;
	/* Before the log, to which a daemon may append. */
	no_head = read_head(path, &ends.head, err);
	if (no_head < 0 || find_anchor(options->database, path, &ends, err) < 0)
		return CLI_ERROR;
	ends.has_head = no_head == 0;
	files = find_files(path);
	verdict.watch_seq[0] = ends.head.seq;
	verdict.watch_seq[1] = ends.anchor.seq;
	for (size_t i = 0; files[i] && verdict.fault == CHAIN_FINE; i++) {
		cleanup_close int fd = fd_open(files[i], O_RDONLY, 0);
		int r = fd < 0 ? fd : chain_verify_fd(fd, &verdict);

		last = files[i];
		if (r < 0) {
			(void)error_set(err, ERR_SYSTEM, -r, "read %s", last);
			return CLI_ERROR;
		}
	}
	if (ends.has_head)
		chain_verify_head(&ends.head, &verdict);
	if (ends.has_anchor)
		chain_verify_head(&ends.anchor, &verdict);
	if (!options->json)
		return print_verification(&verdict, last, &ends);
	print_verification_json(&verdict, last, &ends);
	return verdict.fault == CHAIN_FINE && is_end_proved(&ends) ? CLI_OK : CLI_FAILED;
}

static int find_tail(int fd, uint64_t lines, off_t *ret_at)
{
	struct stat st;
	uint64_t seen = 0;
	char block[4096];

	if (fstat(fd, &st) < 0)
		return -errno;
	for (off_t end = st.st_size; end > 0;) {
		off_t start = end > (off_t)sizeof(block) ? end - (off_t)sizeof(block) : 0;
		ssize_t n = pread(fd, block, (size_t)(end - start), start);

		if (n != end - start)
			return n < 0 ? -errno : -EIO;
		for (ssize_t i = n - 1; i >= 0; i--)
			if (block[i] == '\n' && start + i + 1 != st.st_size && ++seen == lines) {
				*ret_at = start + i + 1;
				return 0;
			}
		end = start;
	}
	*ret_at = 0;
	return 0;
}

static int print_from(int fd, off_t *at)
{
	char block[65536];
	ssize_t n;

	while ((n = pread(fd, block, sizeof(block), *at)) > 0) {
		if (fwrite(block, 1, (size_t)n, stdout) != (size_t)n)
			return -EIO;
		*at += n;
	}
	return n < 0 || fflush(stdout) != 0 ? -errno : 0;
}

/* Across rotations. Takes @fd. */
static int follow_log(const char *path, int fd, off_t at)
{
	cleanup_close int current = fd;
	int r = 0;

	while (r == 0) {
		struct stat opened, named;
		int next;

		(void)poll(NULL, 0, 200);
		r = print_from(current, &at);
		if (r < 0 || fstat(current, &opened) < 0 || stat(path, &named) < 0 ||
		    opened.st_ino == named.st_ino)
			continue;
		next = fd_open(path, O_RDONLY, 0);
		if (next < 0)
			continue;
		r = print_from(current, &at); /* written before the rotation */
		fd_close(current);
		current = next;
		at = 0;
	}
	return r;
}

static int run_tail(const void *values, const struct args *args, struct error *err)
{
	const struct audit_options *options = values;
	cleanup_free char *path = NULL;
	off_t at = 0;
	int fd, r;

	if (check_words(args, err) < 0)
		return -1;
	path = log_path(options, args, err);
	if (!path)
		return -1;
	fd = fd_open(path, O_RDONLY, 0);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "open %s", path);
	r = find_tail(fd, options->lines ? options->lines : TAIL_DEFAULT, &at);
	if (r == 0)
		r = print_from(fd, &at);
	if (r == 0 && options->follow)
		r = follow_log(path, fd, at); /* takes fd */
	else
		fd_close(fd);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "read %s", path);
	return CLI_OK;
}

#define AT(member) offsetof(struct audit_options, member)

static const struct option_row tail_rows[] = {
	{"lines", 'n', OPTION_NUMBER, AT(lines), "N", "number of records; default: 10"},
	{"follow", 'f', OPTION_FLAG, AT(follow), NULL, "keep printing new records"},
	ENDPOINT_ROWS(AT(at)),
};

static const struct option_row verify_rows[] = {
	{"database", 0, OPTION_TEXT, AT(database), "FILE",
         "the daemon's database; default: " DATABASE " beside the log, if present"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the verdict as JSON"},
	ENDPOINT_ROWS(AT(at)),
};

COMMAND(audit_verify, "audit verify", "[FILE]", "Verify that an audit log is intact", run_verify,
        verify_rows, struct audit_options,
        .text = "Reads FILE, its rotated files and its head. Default: the log of the daemon "
                "that answers, which gives the path only; without a daemon, that of a "
                "daemon of this user. Reports the first record that is missing, changed or out "
                "of order. The log must also reach the record that the daemon's database "
                "names. The exit status is 0 only if the log is intact: without a head and without "
                "a database, nothing says where the log ends, and it may have been cut.\n");
COMMAND(audit_tail, "audit tail", "[FILE]", "Show the last records of an audit log", run_tail,
        tail_rows, struct audit_options);
