/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <unistd.h>

#include "base/fd.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/package.h"
#include "cli/run_dir.h"
#include "cli/run_request.h"
#include "cli/run_send.h"
#include "cli/run_terminal.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"

static int check_interactive(const struct run_options *options, struct error *err)
{
	if (options->dir || options->handler || options->json || options->stdin_path ||
	    options->output_bytes)
		return error_set(err, ERR_INVALID, 0,
		                 "--interactive cannot be combined with --dir, --handler, --json, "
		                 "--stdin and --max-output");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(err, ERR_INVALID, 0,
		                 "--interactive needs a terminal; without it, a pipe becomes the "
		                 "input of the program");
	return 0;
}

static int check_options(const struct run_options *options, struct error *err)
{
	if ((options->diff || options->apply) && !options->dir)
		return error_set(err, ERR_INVALID, 0, "--diff and --apply require --dir");
	if ((options->apply_risky || options->apply_modes) && !options->apply)
		return error_set(err, ERR_INVALID, 0,
		                 "--apply-risky and --apply-modes require --apply");
	/* The output of the program has no place for it. */
	if (options->receipt && !options->json)
		return error_set(err, ERR_INVALID, 0,
		                 "--receipt requires --json, which prints the receipt");
	if (options->interactive && check_interactive(options, err) < 0)
		return -1;
	if (options->dir && options->handler)
		return error_set(err, ERR_INVALID, 0, "--dir cannot be combined with --handler");
	return start_daemon_check(&options->at, err);
}

static int run_program(const void *values, const struct args *args, struct error *err)
{
	struct run_options options = *(const struct run_options *)values;
	size_t programs = args->words_count + (options.code ? 1 : 0) + (options.handler ? 1 : 0);
	const char *word = args->words_count > 0 ? args->words[0] : NULL;
	struct run_send what = {
		.json = options.json,
		.value = options.handler,
		.hints = true,
		.no_network =
			"the box has no network: '--allow HOST' lets the program reach a host",
		.near = {.program = options.handler ? options.handler : word, .has_dir = true},
	};
	cleanup_run_input struct run_input input = {0};
	cleanup_request struct millibox_request *request = NULL;
	cleanup_close int interrupt_fd = -1;
	cleanup_exec_call struct exec_call call = {0};

	if (programs == 0)
		return error_set(err, ERR_INVALID, 0,
		                 "expected a program: FILE, -c CODE, --handler FILE or -");
	if (programs > 1)
		return error_set(err, ERR_INVALID, 0,
		                 "expected one program: FILE, -c CODE, --handler FILE or -");
	if (check_options(&options, err) < 0)
		return -1;
	options.in_session = options.dir || options.interactive;
	options.stdin_path = run_request_stdin(&options, word);
	what.lacks_input = !options.stdin_path;
	if (run_request_read(&options, word, &input, err) < 0)
		return -1;
	if (options.dir)
		return run_dir(&options, &input, args, err);
	if (options.interactive)
		return run_terminal(&options, &input, args, err);
	what.request = request = run_request_build(&options, &input, args, err);
	if (!request)
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
	{"language", 'l', OPTION_TEXT, AT(language), "LANGUAGE", "language, see 'millibox languages'; default: by file name, #! line or code, else python"},
	{"template", 0, OPTION_TEXT, AT(template_id), "TEMPLATE", "template of the box"},
	{"package", 0, OPTION_LIST, AT(packages), "NAME", "install this package first, like NAME or NAME==1.2; may be repeated"},
	{"packages", 0, OPTION_TEXT, AT(package_names), "NAMES", "install these packages first, with commas between: numpy,requests==2.32"},
	{"lock", 0, OPTION_TEXT, AT(lock), "FILE", PACKAGE_LOCK_HELP},
	{"option", 0, OPTION_LIST, AT(language_options), "NAME=VALUE", "option of the language, see 'millibox languages --json'; may be repeated"},
	{"code", 'c', OPTION_TEXT, AT(code), "CODE", "run this text instead of a file"},
	{"handler", 0, OPTION_TEXT, AT(handler), "FILE", "call the handler in this file and print its return value as JSON"},
	{"event", 0, OPTION_TEXT, AT(event), "JSON", "event for the handler: JSON or @FILE; default: {}"},
	{"context", 0, OPTION_TEXT, AT(context), "JSON", "context fields for the handler: JSON or @FILE"},
	{"timeout", 't', OPTION_DURATION, AT(timeout_us), "TIME", "time limit: 30, 1.5, 500ms, 5m"},
	LIMIT_ROWS(AT),
	OUTPUT_ROW(AT),
	ENV_ROW(AT),
	{"file", 'f', OPTION_LIST, AT(files), "[NAME=]PATH", "copy the file PATH into the workspace, as NAME if given; may be repeated"},
	{"interactive", 'i', OPTION_FLAG, AT(interactive), NULL, "type at the program: its terminal is this one"},
	{"stdin", 0, OPTION_TEXT, AT(stdin_path), "FILE", "standard input of the program; '-': that of millibox; default: '-' if that is a pipe or a file"},
	{"dir", 0, OPTION_TEXT, AT(dir), "DIR", "give the program a copy of this directory as its workspace"},
	{"diff", 0, OPTION_FLAG, AT(diff), NULL, "show what the program changed in the copy"},
	{"apply", 0, OPTION_FLAG, AT(apply), NULL, "list what the program changed, and change the directory the same way"},
	{"apply-risky", 0, OPTION_FLAG, AT(apply_risky), NULL, "with --apply: also files that programs run by themselves, as hooks, settings of editors, scripts of builds"},
	{"apply-modes", 0, OPTION_FLAG, AT(apply_modes), NULL, "with --apply: all permissions; else new files follow the umask, and others change execute bits only"},
	POLICY_ROWS(AT),
	{"receipt", 0, OPTION_TEXT, AT(receipt), "FORM", "what --json says of the isolation: none (the default), plain or signed"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the result object instead of the output"},
	ISOLATION_ROW(AT(at)),
	ENDPOINT_ROWS(AT(at)),
};
/* clang-format on */

COMMAND(run, "run", "(FILE | -c CODE | --handler FILE | -) [ARGUMENT...]",
        "Run a program in a new box and print its output", run_program, rows, struct run_options,
        .options.program_word = 1, .options.has_program = run_request_has_program,
        .text = "Options precede FILE; all that follows it is passed to the program. After -c "
                "CODE, put '--' before arguments that begin with '-'. A pipe or file that is "
                "standard input becomes that of the program. If no daemon listens "
                "at the default socket, one is started for this run. --apply leaves alone what has "
                "changed meanwhile, links that "
                "lead outside, and files that programs run by themselves (hooks and settings of "
                "git and editors, files of shells, builds and build services), and names them.\n");
