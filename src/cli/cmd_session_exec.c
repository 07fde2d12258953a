/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/fd.h"
#include "base/str.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "cli/run_request.h"
#include "cli/run_send.h"
#include "client/millibox.h"

/* Explains why nothing happens. Errors are ignored: the execution reports them. */
static void warn_if_paused(struct millibox_client *client, const char *id)
{
	cleanup_session struct millibox_session *session = NULL;
	json_auto_t *answer = NULL;

	if (millibox_session_attach(client, id, &session) == 0)
		answer = daemon_parse(millibox_answer(client));
	if (str_equal(message_text(answer, "status"), "paused"))
		message_show("the session is paused; run 'millibox session resume %s'", id);
}

#define NO_NETWORK                                                                                 \
	"the session has no network: one made by 'millibox session create --allow HOST' reaches "  \
	"a host"

static int execute_in_session(const struct run_options *options, const struct run_send *what,
                              struct millibox_client *client, struct millibox_session *session,
                              struct error *err)
{
	cleanup_close int interrupt_fd = interrupt_open(err);
	cleanup_exec_call struct exec_call call = {0};
	int status;

	if (interrupt_fd < 0)
		return -1;
	exec_call_init(&call, interrupt_fd, options->json);
	call.values = options->code && !options->json;
	status = run_send_to(what, client, session, &call, err);
	if (json_is_true(json_object_get(call.result, "session_reset")) && !options->json)
		message_show("the session's variables are lost: it continues with a new runner");
	return status;
}

static int start_in_background(const struct run_options *options, struct millibox_client *client,
                               struct millibox_session *session,
                               const struct millibox_request *request, struct error *err)
{
	const struct common_options common = {.json = options->json};
	json_auto_t *answer = NULL;
	char *id = NULL;
	int r = millibox_session_start(session, request, &id);
	int status = resource_finish(&common, client, r, &answer, err);

	if (answer)
		(void)puts(id);
	millibox_free(id);
	return status;
}

static int run_exec(const void *values, const struct args *args, struct error *err)
{
	struct run_options options = *(const struct run_options *)values;
	const char *word = args->words_count > 1 ? args->words[1] : NULL;
	cleanup_run_input struct run_input input = {0};
	cleanup_daemon struct millibox_client *client = daemon_open(&options.at);
	cleanup_session struct millibox_session *session = NULL;
	cleanup_request struct millibox_request *request = NULL;

	options.in_session = true;
	if (args->words_count == 0)
		return error_set(err, ERR_INVALID, 0, "expected a session id");
	if (args->words_count + (options.code ? 1 : 0) != 2)
		return error_set(err, ERR_INVALID, 0, "expected one program: FILE, -c CODE or -");
	options.stdin_path = run_request_stdin(&options, word);
	if (daemon_session(client, args->words[0], &session, err) < 0 ||
	    run_request_read(&options, word, &input, err) < 0)
		return -1;
	request = run_request_build(&options, &input, args, err);
	if (!request || daemon_require(client, err) < 0)
		return -1;
	warn_if_paused(client, args->words[0]);
	if (options.background)
		return start_in_background(&options, client, session, request, err);
	return execute_in_session(&options,
	                          &(struct run_send){.request = request,
	                                             .json = options.json,
	                                             .hints = true,
	                                             .no_network = NO_NETWORK,
	                                             .near.program = word},
	                          client, session, err);
}

#define AT(member) offsetof(struct run_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"language", 'l', OPTION_TEXT,     AT(language),   "LANGUAGE",   "language, see 'millibox languages'; default: by file name or #! line, else the session's"},
	{"option",   0,   OPTION_LIST,     AT(language_options), "NAME=VALUE", "option of the language, see 'millibox languages --json'; may be repeated"},
	{"code",     'c', OPTION_TEXT,     AT(code),       "CODE",       "run this text instead of a file"},
	{"timeout",  't', OPTION_DURATION, AT(timeout_us), "TIME",       "time limit: 30, 1.5, 5m"},
	ENV_ROW(AT),
	{"file",     'f', OPTION_LIST,     AT(files),      "[NAME=]PATH", "copy the file PATH into the workspace, as NAME if given; may be repeated"},
	{"stdin",    'i', OPTION_TEXT,     AT(stdin_path), "FILE",       "standard input of the program; '-': that of millibox; default: '-' if that is a pipe or a file"},
	{"background", 'b', OPTION_FLAG,   AT(background), NULL,         "start it beside the queue and print its id instead of waiting"},
	{"json",     0,   OPTION_FLAG,     AT(json),       NULL,         "print the result object instead of the output"},
	ENDPOINT_ROWS(AT(at)),
};
/* clang-format on */

COMMAND(session_exec, "session exec", "SESSION (FILE | -c CODE | -) [ARGUMENT...]",
        "Run a program in a session and print its output", run_exec, rows, struct run_options,
        .options.program_word = 2, .options.has_program = run_request_has_program,
        .text = "Ctrl-C cancels the execution, not the session.\n"
                "In a paused session the execution waits until the session is resumed.\n"
                "With -c the value of the last expression is printed after the output. Images "
                "and other forms of it are printed with --json only.\n");
