/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/run_request.h"
#include "cli/run_send.h"

static int run_program(const void *values, const struct args *args, struct error *err)
{
	struct run_options options = *(const struct run_options *)values;
	size_t programs = args->words_count + (options.code ? 1 : 0) + (options.handler ? 1 : 0);
	const char *word = args->words_count > 0 ? args->words[0] : NULL;
	struct run_send what = {.json = options.json, .value = options.handler};
	cleanup_run_input struct run_input input = {0};
	cleanup_free char *body = NULL;
	cleanup_close int interrupt_fd = -1;
	cleanup_exec_call struct exec_call call = {0};

	if (programs == 0)
		return error_set(err, ERR_INVALID, 0,
		                 "expected a program: FILE, -c CODE, --handler FILE or -");
	if (programs > 1)
		return error_set(err, ERR_INVALID, 0,
		                 "expected one program: FILE, -c CODE, --handler FILE or -");
	options.stdin_path = run_request_stdin(&options, word);
	if (run_request_read(&options, word, &input, err) < 0)
		return -1;
	what.body = body = run_request_build(&options, &input, args, err);
	if (!body)
		return -1;
	interrupt_fd = interrupt_open(err);
	if (interrupt_fd < 0)
		return -1;
	exec_call_init(&call, interrupt_fd, options.json);
	return run_send(&what, &options.at, &call, err);
}

#define AT(member) offsetof(struct run_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"language", 'l', OPTION_TEXT, AT(language), "LANGUAGE", "python or shell; default: by the file name or #! line, else guessed from the code"},
	{"template", 0, OPTION_TEXT, AT(template_id), "TEMPLATE", "template of the box"},
	{"code", 'c', OPTION_TEXT, AT(code), "CODE", "run this text instead of a file"},
	{"handler", 0, OPTION_TEXT, AT(handler), "FILE", "call the handler in this file and print its return value as JSON"},
	{"event", 0, OPTION_TEXT, AT(event), "JSON", "event for the handler: JSON or @FILE; default: {}"},
	{"context", 0, OPTION_TEXT, AT(context), "JSON", "context fields for the handler: JSON or @FILE"},
	{"timeout", 't', OPTION_DURATION, AT(timeout_us), "TIME", "time limit: 30, 1.5, 500ms, 5m"},
	LIMIT_ROWS(AT),
	OUTPUT_ROW(AT),
	ENV_ROW(AT),
	{"file", 'f', OPTION_LIST, AT(files), "NAME=PATH", "copy a file into the workspace; may be repeated"},
	{"stdin", 'i', OPTION_TEXT, AT(stdin_path), "FILE", "standard input of the program; '-': that of millibox; default: that, if a pipe or file"},
	POLICY_ROWS(AT),
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the result object instead of the output"},
	ENDPOINT_ROWS(AT(at)),
};
/* clang-format on */

COMMAND(run, "run", "(FILE | -c CODE | --handler FILE | -) [ARGUMENT...]",
        "Run a program in a new box and print its output", run_program, rows, struct run_options,
        .options.program_word = 1, .options.has_program = run_request_has_program,
        .text = "Options precede the program; all that follows it is passed to it. A pipe or file "
                "that is\n"
                "standard input becomes that of the program. If no daemon listens at the default "
                "socket,\n"
                "one is started for this run.\n");
