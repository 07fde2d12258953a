/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/utf8.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "client/millibox.h"

#define LIST_MAX 10000

struct file_options {
	struct common_options common;
	const char *after;
	uint64_t limit;
	bool recursive, replace;
};

#define AT(member) offsetof(struct file_options, member)

static void print_file(const json_t *file, const char *name)
{
	const json_t *target = json_object_get(file, "target");

	resource_print_cell(file, "type", 11);
	resource_print_cell(file, "mode", 6);
	(void)printf("%12lld  ", (long long)json_integer_value(json_object_get(file, "size")));
	resource_print_cell(file, "modified_time", 26);
	message_print_safe(stdout, *name ? name : "?");
	if (json_is_string(target)) {
		(void)fputs(" -> ", stdout);
		message_print_safe(stdout, json_string_value(target));
	}
	(void)putchar('\n');
}

static void print_list(const json_t *answer, bool recursive)
{
	const json_t *list = json_object_get(answer, "files");
	const char *next = message_text(answer, "next");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *file = json_array_get(list, i);

		print_file(file, message_text(file, recursive ? "path" : "name"));
	}
	if (json_is_true(json_object_get(answer, "truncated")) && recursive)
		message_show(
			"the list is incomplete: --limit lists up to %d, 'file get -r' copies all",
			LIST_MAX);
	else if (json_is_true(json_object_get(answer, "truncated")))
		message_show("the list is incomplete: continue with --after '%s'",
		             *next ? next : "?");
}

static int run_ls(const void *values, const struct args *args, struct error *err)
{
	const struct file_options *options = values;
	const char *dir = args->words_count == 2 ? args->words[1] : "";
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_session struct millibox_session *session = NULL;
	json_auto_t *answer = NULL;
	int status, r;

	if (args->words_count < 1 || args->words_count > 2)
		return error_set(err, ERR_INVALID, 0,
		                 "expected a session and at most one directory in it");
	if (options->recursive && options->after)
		return error_set(err, ERR_INVALID, 0,
		                 "--after cannot be combined with --recursive, which has no order");
	if (daemon_session(client, args->words[0], &session, err) < 0)
		return -1;
	r = millibox_file_page(session, dir, options->recursive, resource_limit(options->limit, 0),
	                       options->after, NULL);
	status = resource_finish(&options->common, client, r, &answer, err);
	if (answer)
		print_list(answer, options->recursive);
	return status;
}

struct path_command {
	int (*call)(const struct file_options *options, struct millibox_session *session,
	            const char *path);
	bool prints;
	bool in_json; /* the path is sent in JSON, not in a URL */
};

static int run_path(const struct file_options *options, const struct path_command *command,
                    struct millibox_client *client, struct millibox_session *session,
                    const char *path, struct error *err)
{
	json_auto_t *answer = NULL;
	int status;

	if (command->in_json && !utf8_is_valid(path, strlen(path)))
		return error_set(err, ERR_INVALID, 0, "the path is not UTF-8 text");
	status = resource_finish(&options->common, client, command->call(options, session, path),
	                         &answer, err);
	if (answer && command->prints)
		print_file(answer, message_text(answer, "path"));
	return status;
}

/* Continues after a failure. Return: the highest exit status. */
static int run_each_path(const void *values, const struct args *args, struct error *err)
{
	const struct file_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_session struct millibox_session *session = NULL;
	int worst = CLI_OK;

	if (args->words_count < 2)
		return error_set(err, ERR_INVALID, 0,
		                 "expected a session and at least one path in it");
	if (daemon_session(client, args->words[0], &session, err) < 0)
		return -1;
	for (size_t i = 1; i < args->words_count; i++) {
		int status = run_path(options, args->data, client, session, args->words[i], err);

		/* No daemon: the others would fail too. */
		if (status < 0)
			return -1;
		worst = status > worst ? status : worst;
	}
	return worst;
}

static int stat_one(const struct file_options *options attr_unused,
                    struct millibox_session *session, const char *path)
{
	return millibox_file_stat(session, path, NULL);
}

static int rm_one(const struct file_options *options, struct millibox_session *session,
                  const char *path)
{
	return millibox_file_remove(session, path, options->recursive);
}

static int mkdir_one(const struct file_options *options attr_unused,
                     struct millibox_session *session, const char *path)
{
	return millibox_file_mkdir(session, path);
}

static int run_mv(const void *values, const struct args *args, struct error *err)
{
	const struct file_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_session struct millibox_session *session = NULL;
	json_auto_t *answer = NULL;

	if (args->words_count != 3)
		return error_set(err, ERR_INVALID, 0,
		                 "expected a session, a path in it and the new path");
	if (daemon_session(client, args->words[0], &session, err) < 0)
		return -1;
	for (size_t i = 1; i < 3; i++)
		if (!utf8_is_valid(args->words[i], strlen(args->words[i])))
			return error_set(err, ERR_INVALID, 0, "the path is not UTF-8 text");
	return resource_finish(
		&options->common, client,
		millibox_file_move(session, args->words[1], args->words[2], options->replace),
		&answer, err);
}

/* clang-format off */
static const struct option_row ls_rows[] = {
	{"recursive", 'r', OPTION_FLAG,   AT(recursive), NULL,   "list the tree below, with paths, in no order"},
	{"limit",     'n', OPTION_NUMBER, AT(limit),     "N",    "list at most N; default and maximum: 10000"},
	{"after",     0,   OPTION_TEXT,   AT(after),     "NAME", "only names after this one, in byte order"},
	COMMON_ROWS(AT(common)),
};
static const struct option_row mv_rows[] = {
	{"replace", 'f', OPTION_FLAG, AT(replace), NULL, "replace an existing file"},
	COMMON_ROWS(AT(common)),
};
static const struct option_row rm_rows[] = {
	{"recursive", 'r', OPTION_FLAG, AT(recursive), NULL, "remove directories with their contents"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(file_ls, "file ls", "SESSION [DIRECTORY]", "List files in a session", run_ls, ls_rows,
        struct file_options);
COMMAND(file_stat, "file stat", "SESSION PATH...",
        "Show type, mode, size and time of files in a session", run_each_path, resource_rows,
        struct file_options, .data = &(const struct path_command){stat_one, true, false});
COMMAND(file_mkdir, "file mkdir", "SESSION PATH...",
        "Create directories in a session, and their parents", run_each_path, resource_rows,
        struct file_options, .data = &(const struct path_command){mkdir_one, false, true});
COMMAND(file_mv, "file mv", "SESSION PATH TO", "Move a file or directory in a session", run_mv,
        mv_rows, struct file_options);
COMMAND(file_rm, "file rm", "SESSION PATH...", "Remove files from a session", run_each_path,
        rm_rows, struct file_options, .data = &(const struct path_command){rm_one, false, false});
