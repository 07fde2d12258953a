/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/run_request.h"
#include "cli/run_send.h"

static int check_words(const struct run_options *options, const struct args *args,
                       struct error *err)
{
	size_t programs = args->words_count + (options->code ? 1 : 0) + (options->handler ? 1 : 0);

	if (programs == 0)
		return error_set(err, ERR_INVALID, 0,
		                 "give a program: FILE, -c CODE, --handler FILE or -");
	if (programs > 1)
		return error_set(err, ERR_INVALID, 0,
		                 "one program only; its arguments go after '--'");
	return 0;
}

/* Usage errors are those of the command line itself; a file that cannot be read is another kind. */
static int status_of(const struct error *err)
{
	return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
}

static int run(const void *values, const struct args *args, struct error *err)
{
	const struct run_options *options = values;
	const char *word = args->words_count > 0 ? args->words[0] : NULL;
	struct run_send what = {.json = options->json, .value = options->handler};
	cleanup_run_input struct run_input input = {0};
	cleanup_free char *body = NULL;
	cleanup_close int interrupt_fd = -1;
	cleanup_exec_call struct exec_call call = {0};

	if (check_words(options, args, err) < 0 || run_request_read(options, word, &input, err) < 0)
		return status_of(err);
	what.body = body = run_request_build(options, &input, args, err);
	if (!body)
		return status_of(err);
	interrupt_fd = interrupt_open();
	if (interrupt_fd < 0) {
		(void)error_set(err, ERR_SYSTEM, -interrupt_fd, "make a signal descriptor");
		return CLI_ERROR;
	}
	exec_call_init(&call, interrupt_fd, options->json);
	return run_send(&what, &options->at, &call, err);
}

#define AT(member) offsetof(struct run_options, member)

/* clang-format off: a row is one option, however long its line. */
static const struct option_row rows[] = {
	{"language", 'l', OPTION_TEXT, AT(language), "LANGUAGE",
         "python or shell; default: by file name or first line"},
	{"template", 0, OPTION_TEXT, AT(template_id), "TEMPLATE", "what its box is made of"},
	{"code", 'c', OPTION_TEXT, AT(code), "CODE", "run this text instead of a file"},
	{"handler", 0, OPTION_TEXT, AT(handler), "FILE",
         "call the handler that this file defines; its value is printed as JSON"},
	{"event", 0, OPTION_TEXT, AT(event), "JSON",
         "what the handler is given: JSON or @FILE; default: {}"},
	{"context", 0, OPTION_TEXT, AT(context), "JSON",
         "fields of the handler's context: JSON or @FILE"},
	{"timeout", 't', OPTION_DURATION, AT(timeout_us), "TIME", "time limit: 30, 1.5, 500ms, 5m"},
	{"memory", 'm', OPTION_SIZE, AT(memory_bytes), "SIZE", "memory limit: 512Mi, 1Gi"},
	{"cpu", 0, OPTION_CPU, AT(cpu_millicores), "CORES", "processor share: 1, 0.5, 500m"},
	{"disk", 0, OPTION_SIZE, AT(disk_bytes), "SIZE", "room for files: 256Mi"},
	{"processes", 0, OPTION_NUMBER, AT(processes), "N",
         "processes and threads alive at a time"},
	{"max-output", 0, OPTION_SIZE, AT(output_bytes), "SIZE", "kept output of each stream: 1Mi"},
	{"env", 'e', OPTION_LIST, AT(env), "NAME=VALUE",
         "set an environment variable; may be repeated"},
	{"file", 'f', OPTION_LIST, AT(files), "NAME=PATH",
         "put a file into the workspace; may be repeated"},
	{"stdin", 'i', OPTION_TEXT, AT(stdin_path), "FILE",
         "standard input of the program; '-': our own"},
	{"policy", 0, OPTION_TEXT, AT(policy), "NAME", "a policy to be held to besides one's own"},
	{"network", 0, OPTION_TEXT, AT(network), "MODE",
         "none, allowlist, bridge or host, as the policy allows"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the result object instead of the output"},
	ENDPOINT_ROWS(AT(at)),
};
/* clang-format on */

const struct command command_run = {
	.name = "run",
	.arguments = "(FILE | -c CODE | --handler FILE | -) [-- ARGUMENT...]",
	.summary = "Run a program in a box of its own and pass its output on",
	.text = "The exit status is the program's own; 128 + N after signal N; 124 at the time "
		"limit;\n"
		"125 when Millibox failed; 2 for a wrong command line. With no daemon at the "
		"default\n"
		"socket, one is started for this run alone.\n",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct run_options),
	.run = run,
};
