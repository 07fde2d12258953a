/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/client/program.h"
#include "cli/message.h"
#include "cli/resource.h"

#define RESULT_MAX (64u << 20)

static void print_lines(const json_t *answer)
{
	const json_t *lines = json_object_get(answer, "why"), *line;
	size_t i;

	if (!json_is_array(lines))
		(void)puts("It succeeded, and nothing was refused.");
	json_array_foreach (lines, i, line) {
		message_print_safe(stdout, json_is_string(line) ? json_string_value(line) : "");
		(void)putchar('\n');
	}
}

/* The result of a 'run', of which the daemon keeps nothing. */
static int explain_input(const struct common_options *options, const char *file, struct error *err)
{
	bool is_stdin = str_equal(file, "-");
	const char *name = is_stdin ? "standard input" : file;
	cleanup_buf struct buf text = BUF_INIT(RESULT_MAX);
	json_auto_t *result = NULL;
	int r = is_stdin ? program_read_fd(STDIN_FILENO, &text)
	                 : file_read_at(AT_FDCWD, file, &text);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "read %s", name);
	result = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(result) || !json_object_get(result, "why"))
		return error_set(err, ERR_INVALID, 0,
		                 "%s is not a result; use 'millibox run --json ... | millibox why "
		                 "-'",
		                 name);
	if (options->json)
		message_print_json(json_object_get(result, "why"));
	else
		print_lines(result);
	return CLI_OK;
}

/* exec_20261117_ab12cd34 */
static bool is_execution_id(const char *word)
{
	static const char digits[] = "0123456789";
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

	if (!str_has_prefix(word, "exec_"))
		return false;
	word += strlen("exec_");
	return strspn(word, digits) == 8 && word[8] == '_' && strspn(word + 9, letters) == 8 &&
	       !word[17];
}

static int run_why(const void *values, const struct args *args, struct error *err)
{
	static const struct resource executions = {.base = "/api/v1/executions",
	                                           .what = "execution id"};
	const struct common_options *options = values;
	cleanup_free char *path = NULL;
	struct daemon_call call = {.method = "GET"};
	json_auto_t *answer = NULL;
	int status;

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one execution id, a file, or -");
	if (!is_execution_id(args->words[0]) &&
	    (str_equal(args->words[0], "-") || access(args->words[0], F_OK) == 0))
		return explain_input(options, args->words[0], err);
	call.path = path = resource_path(&executions, args->words[0], "/why", err);
	status = path ? resource_call(options, &call, &answer, err) : -1;
	if (answer)
		print_lines(answer);
	return status;
}

COMMAND(why, "why", "(EXECUTION | FILE | -)", "Explain what ended an execution, and what to change",
        run_why, resource_rows, struct common_options,
        .text = "FILE, or standard input with -, is a result, as 'millibox run --json' prints "
                "it. A word in the form of an execution id is an id; a file of that name is "
                "./NAME.\n");
