/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/daemon_check.h"

#include <jansson.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/client/program.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "daemon/exit_status.h"

#define OUTPUT_MAX (64 * KIB)
#define PREFIX     "milliboxd: "

/* Of the daemon's one line. Return: owned. */
static char *error_line(const struct buf *out)
{
	cleanup_free char *text = xmemdup0(out->data ? out->data : "", out->len);
	const char *start = str_has_prefix(text, PREFIX) ? text + strlen(PREFIX) : text;

	return xstrndup(start, strcspn(start, "\n"));
}

static void print_json(const struct args *args, const char *error)
{
	json_t *files = json_array();
	json_auto_t *object = json_pack("{s:o, s:b}", "files", files, "valid", !error);

	for (size_t i = 0; i < args->words_count; i++)
		(void)json_array_append_new(files, json_string(args->words[i]));
	if (error)
		(void)json_object_set_new(object, "error", json_string(error));
	message_print_json(object);
}

static void print_valid(const struct args *args)
{
	for (size_t i = 0; i < args->words_count; i++) {
		message_print_safe(stdout, args->words[i]);
		(void)puts(": ok");
	}
}

static void print_verdict(const struct args *args, bool json, const char *error)
{
	if (json)
		print_json(args, error);
	else if (error)
		message_show("%s", error);
	else
		print_valid(args);
}

int daemon_check(const char *const *flags, const struct args *args, bool json, struct error *err)
{
	cleanup_buf struct buf out = BUF_INIT(OUTPUT_MAX);
	cleanup_free char *daemon = program_find("milliboxd", err);
	cleanup_free const char **argv = NULL;
	cleanup_free char *error = NULL;
	size_t count = 0;
	int status = 0;

	if (!daemon)
		return -1;
	while (flags[count])
		count++;
	argv = xcalloc(count + 2, sizeof(*argv));
	argv[0] = daemon;
	memcpy(argv + 1, flags, count * sizeof(*argv));
	if (program_read_both(argv, &out, &status, err) < 0)
		return -1;
	if (!WIFEXITED(status) ||
	    (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != DAEMON_BAD_CONFIG))
		return error_set(err, ERR_SYSTEM, 0, "milliboxd %s failed", flags[0]);
	error = WEXITSTATUS(status) == 0 ? NULL : error_line(&out);
	print_verdict(args, json, error);
	return error ? CLI_FAILED : CLI_OK;
}
