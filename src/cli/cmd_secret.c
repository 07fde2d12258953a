/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "cli/local_file.h"
#include "cli/message.h"
#include "cli/resource.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define VALUE_MAX 4096

struct secret_options {
	struct common_options common;
	struct option_list hosts;
	const char *mode, *header, *format, *env;
	const char *file;
	const char *value; /* read, never an option: arguments of processes are public */
};

#define AT(member) offsetof(struct secret_options, member)

static const struct resource_field fields[] = {
	{"host", RESOURCE_LIST, AT(hosts), "hosts", NULL},
	{"mode", RESOURCE_TEXT, AT(mode), "mode", NULL},
	{"header", RESOURCE_TEXT, AT(header), "header", NULL},
	{"format", RESOURCE_TEXT, AT(format), "format", NULL},
	{"env", RESOURCE_TEXT, AT(env), "env", NULL},
	{"value", RESOURCE_TEXT, AT(value), "value", NULL},
};

static const struct resource_column columns[] = {
	{"NAME", "name", NULL, 20},          {"MODE", "mode", NULL, 12},
	{"STATUS", "status", NULL, 10},      {"HEADER", "header", NULL, 16},
	{"CHANGED", "updated_at", NULL, 26}, {"HOSTS", "hosts", NULL, 0},
};

static const struct resource secrets = {
	.base = "/api/v1/secrets",
	.what = "secret name",
	.list = "secrets",
	.name_key = "name",
	RESOURCE_FIELDS(fields),
	RESOURCE_COLUMNS(columns),
};

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

/* Up to the end of the file, or of a line that is typed. */
static int read_value(int fd, bool is_line, struct buf *to, struct error *err)
{
	/* All at once: growing would leave copies behind. */
	if (buf_reserve(to, VALUE_MAX + 2) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "read the value");
	while (to->len < VALUE_MAX + 2) {
		ssize_t n = read(fd, to->data + to->len, VALUE_MAX + 2 - to->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, ERR_INVALID, errno, "read the value");
		to->len += (size_t)n;
		if (n == 0 || (is_line && to->data[to->len - 1] == '\n'))
			break;
	}
	while (to->len > 0 && strchr("\r\n", to->data[to->len - 1]))
		to->len--;
	to->data[to->len] = '\0';
	if (to->len == 0)
		return error_set(err, ERR_INVALID, 0,
		                 "the value is empty: pass it on standard input or by --file");
	if (to->len > VALUE_MAX || memchr(to->data, '\0', to->len))
		return error_set(err, ERR_INVALID, 0,
		                 "the value must be one line of at most %d characters", VALUE_MAX);
	return 0;
}

static int prompt(struct buf *to, struct error *err)
{
	struct termios before, silent;
	int r;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return error_set(err, ERR_SYSTEM, errno, "terminal");
	silent = before;
	silent.c_lflag &= ~(tcflag_t)ECHO;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) < 0)
		return error_set(err, ERR_SYSTEM, errno, "terminal");
	(void)fputs("Value: ", stderr);
	r = read_value(STDIN_FILENO, true, to, err);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	(void)fputc('\n', stderr);
	return r;
}

static int ask_value(const char *file, struct buf *to, struct error *err)
{
	cleanup_local_file struct local_file from = LOCAL_FILE_INIT;

	if (!file && isatty(STDIN_FILENO))
		return prompt(to, err);
	if (local_file_read(file ? file : "-", &from, err) < 0)
		return -1;
	return read_value(from.fd, false, to, err);
}

static int run_set(const void *values, const struct args *args, struct error *err)
{
	struct secret_options options = *(const struct secret_options *)values;
	attr_cleanup(wipe) struct buf value = BUF_INIT(VALUE_MAX + 2);
	json_auto_t *answer = NULL;
	int status;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0,
		                 "expected one secret name; the value is read "
		                 "from standard input or --file");
	if (ask_value(options.file, &value, err) < 0)
		return -1;
	options.value = value.data;
	status = resource_update(&secrets, "PUT", &options, args, &answer, err);
	if (answer && json_is_string(json_object_get(answer, "env")))
		message_show("boxes that use it have the placeholder %s in %s",
		             message_text(answer, "placeholder"), message_text(answer, "env"));
	return status;
}

/* clang-format off */
static const struct option_row set_rows[] = {
	{"host",   0,   OPTION_LIST, AT(hosts),  "HOST",   "requests to this host get the secret: api.example.com[:PORT], or http://NAME[:PORT]; may be repeated"},
	{"mode",   0,   OPTION_TEXT, AT(mode),   "MODE",   "how requests get the value: header (default) or placeholder"},
	{"header", 0,   OPTION_TEXT, AT(header), "NAME",   "name of the header; default: Authorization"},
	{"format", 0,   OPTION_TEXT, AT(format), "FORMAT", "value of the header; default: \"Bearer {value}\""},
	{"env",    'e', OPTION_TEXT, AT(env),    "NAME",   "variable that has the placeholder in boxes"},
	{"file",   'f', OPTION_TEXT, AT(file),   "FILE",   "read the value from this file, not from standard input"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(secret_set, "secret set", "NAME", "Set a secret, or replace its value", run_set, set_rows,
        struct secret_options,
        .text = "The value is read from standard input, from --file, or typed without echo.\n");
COMMAND(secret_list, "secret list", "", "List secrets, without their values", resource_run_list,
        resource_rows, struct secret_options, .data = &secrets);
COMMAND(secret_rm, "secret rm", "NAME", "Delete a secret", resource_run_delete, resource_rows,
        struct secret_options, .data = &secrets);
