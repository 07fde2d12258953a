/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "cli/client/api_call.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/run_request.h"
#include "cli/run_send.h"

/* Closing the stream does not end an execution. */
static void cancel_execution(const struct endpoint *endpoint, const struct exec_call *call)
{
	cleanup_free char *path = NULL;
	struct error err = {0};
	json_auto_t *answer = NULL;
	int status = 0;

	if (!id_is_valid(call->execution_id, sizeof(call->execution_id)))
		return;
	path = xasprintf("/api/v1/executions/%s/cancel", call->execution_id);
	if (api_call(endpoint, &(struct api_call){"POST", path, "{}"}, &answer, &status, &err) < 0)
		message_show_error(&err);
}

/* Explains why nothing happens. Errors are ignored: the execution reports them. */
static void warn_if_paused(const struct endpoint *endpoint, const char *session)
{
	struct error err = {0};
	cleanup_free char *path = api_path(session, "", &err);
	json_auto_t *answer = NULL;
	int status = 0;

	if (!path ||
	    api_call(endpoint, &(struct api_call){"GET", path, NULL}, &answer, &status, &err) < 0)
		return;
	if (str_equal(message_text(answer, "status"), "paused"))
		message_show("the session is paused; run 'millibox session resume %s'", session);
}

static int execute_in_session(const struct run_options *options, const struct endpoint *endpoint,
                              const char *path, const char *body, struct error *err)
{
	const struct run_send what = {.body = body, .json = options->json};
	cleanup_close int interrupt_fd = interrupt_open(err);
	cleanup_exec_call struct exec_call call = {0};
	int status;

	if (interrupt_fd < 0)
		return -1;
	exec_call_init(&call, interrupt_fd, options->json);
	call.stream = true; /* for the id, to cancel it */
	call.values = options->code && !options->json;
	status = run_send_to(&what, endpoint, path, &call, err);
	if (!call.result && !call.problem)
		cancel_execution(endpoint, &call);
	if (json_is_true(json_object_get(call.result, "session_reset")) && !options->json)
		message_show("the session's variables are lost: it continues with a new runner");
	return status;
}

static int run_exec(const void *values, const struct args *args, struct error *err)
{
	struct run_options options = *(const struct run_options *)values;
	const char *word = args->words_count > 1 ? args->words[1] : NULL;
	cleanup_run_input struct run_input input = {0};
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_free char *path = NULL, *body = NULL;

	options.in_session = true;
	if (args->words_count == 0)
		return error_set(err, ERR_INVALID, 0, "expected a session id");
	if (args->words_count + (options.code ? 1 : 0) != 2)
		return error_set(err, ERR_INVALID, 0, "expected one program: FILE, -c CODE or -");
	options.stdin_path = run_request_stdin(&options, word);
	path = api_path(args->words[0], "/execute", err);
	if (!path || run_request_read(&options, word, &input, err) < 0)
		return -1;
	body = run_request_build(&options, &input, args, err);
	if (!body || api_endpoint(&options.at, &endpoint, err) < 0)
		return -1;
	warn_if_paused(&endpoint, args->words[0]);
	return execute_in_session(&options, &endpoint, path, body, err);
}

#define AT(member) offsetof(struct run_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"language", 'l', OPTION_TEXT,     AT(language),   "LANGUAGE",   "python or shell; default: from the file name, else the session's"},
	{"code",     'c', OPTION_TEXT,     AT(code),       "CODE",       "run this text instead of a file"},
	{"timeout",  't', OPTION_DURATION, AT(timeout_us), "TIME",       "time limit: 30, 1.5, 5m"},
	ENV_ROW(AT),
	{"file",     'f', OPTION_LIST,     AT(files),      "NAME=PATH",  "copy a file into the workspace; may be repeated"},
	{"stdin",    'i', OPTION_TEXT,     AT(stdin_path), "FILE",       "standard input of the program; '-': that of millibox; default: that, if a pipe or file"},
	{"json",     0,   OPTION_FLAG,     AT(json),       NULL,         "print the result object instead of the output"},
	ENDPOINT_ROWS(AT(at)),
};
/* clang-format on */

COMMAND(session_exec, "session exec", "SESSION (FILE | -c CODE | -) [ARGUMENT...]",
        "Run a program in a session and print its output", run_exec, rows, struct run_options,
        .options.program_word = 2, .options.has_program = run_request_has_program,
        .text = "Ctrl-C cancels the execution, not the session.\n"
                "In a paused session the execution waits until the session is resumed.\n"
                "With -c the value of the last expression is printed after the output. Images and "
                "other forms\n"
                "of it are printed with --json only.\n");
