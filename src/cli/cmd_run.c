/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/endpoint.h"
#include "cli/events.h"
#include "cli/interrupt.h"
#include "cli/own_daemon.h"
#include "cli/run_request.h"
#include "cli/say.h"
#include "cli/verdict.h"
#include "http/client.h"

/* One request and what came of it. */
struct call {
	int interrupt_fd;
	bool json;
	struct events events;
	struct buf body; /* an answer that is one object */
	json_t *result;  /* owned */
	json_t *problem; /* owned: an error object of the API */
	int failure;     /* why we stopped: negative errno of a write or of the stream, or 0 */
};

static int on_event(void *ctx, const struct event *event)
{
	struct call *call = ctx;
	int out = event->kind == EVENT_STDERR ? STDERR_FILENO : STDOUT_FILENO;

	if (event->kind == EVENT_STDOUT || event->kind == EVENT_STDERR)
		return interrupt_write(call->interrupt_fd, out, event->data, event->len);
	if (event->kind == EVENT_END && !call->result)
		call->result = json_incref(event->object);
	if (event->kind == EVENT_ERROR && !call->problem)
		call->problem = json_incref(event->object);
	return 0;
}

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct call *call = ctx;

	if (status == 200 && !call->json)
		call->failure = events_feed(&call->events, data, len);
	else
		call->failure = buf_add(&call->body, data, len);
	return call->failure;
}

static void call_init(struct call *call, int interrupt_fd, bool json)
{
	*call = (struct call){.interrupt_fd = interrupt_fd, .json = json};
	events_init(&call->events, EVENTS_LINE_MAX, on_event, call);
	buf_init(&call->body, EVENTS_LINE_MAX);
}

static void call_done(struct call *call)
{
	events_done(&call->events);
	buf_done(&call->body);
	json_decref(call->result);
	json_decref(call->problem);
}
#define cleanup_call attr_cleanup(call_done)

/* The answer that came in one piece: the result, or why there is none. */
static int read_body(struct call *call, int status, struct error *err)
{
	const char *text = call->body.data ? call->body.data : "";
	json_t *object = json_loadb(text, call->body.len, JSON_ALLOW_NUL, NULL);

	if (!json_is_object(object)) {
		json_decref(object);
		return error_set(err, ERR_PROTOCOL, 0,
		                 "the answer (status %d) is not one of a Millibox daemon", status);
	}
	*(status == 200 ? &call->result : &call->problem) = object;
	return 0;
}

/* Return: 0 with call->result or call->problem filled, or -1. */
static int perform(struct call *call, const struct endpoint *endpoint, const char *body,
                   struct error *err)
{
	cleanup_free char *url = xasprintf("%s/api/v1/execute", endpoint->url);
	struct http_client_request request = {
		.method = "POST",
		.socket_path = endpoint->socket,
		.url = url,
		.body = body,
		.body_len = strlen(body),
		.accept = call->json ? "application/json" : "application/x-ndjson",
		.cancel_fd = call->interrupt_fd,
		.on_data = on_data,
		.ctx = call,
	};
	int status = 0;

	if (http_client_run(&request, &status, err) < 0)
		return -1;
	if (status != 200 || call->json)
		return read_body(call, status, err);
	if (!call->result && !call->problem)
		return error_set(err, ERR_PROTOCOL, 0, "the daemon ended its answer early");
	return 0;
}

static void print_json(const json_t *object)
{
	/* As many digits as the API writes: all of them would show how the machine rounds. */
	char *text =
		json_dumps(object, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));

	if (!text)
		abort();
	(void)puts(text);
	free(text);
}

static int report(const struct call *call)
{
	const json_t *object = call->problem ? call->problem : call->result;

	if (call->json)
		print_json(object);
	else if (call->problem)
		say_problem(object);
	else
		verdict_explain(object);
	return call->problem ? problem_exit_status(object) : verdict_exit_status(object);
}

/* Why the request did not come to its end; an interruption is not an error to talk about. */
static int explain_failure(const struct call *call, const struct own_daemon *own, struct error *err)
{
	int signo = interrupt_taken(call->interrupt_fd);

	if (call->failure == -EPIPE)
		signo = SIGPIPE;
	if (signo > 0) {
		error_clear(err);
		return CLI_SIGNAL + signo;
	}
	if (call->failure < 0) {
		error_clear(err);
		(void)error_set(err, ERR_PROTOCOL, -call->failure,
		                call->failure == -EPROTO
		                        ? "the daemon's answer cannot be understood"
		                        : "cannot pass the program's output on");
	}
	if (own)
		own_daemon_show_log(own);
	return CLI_OURS;
}

static int run_at(const struct endpoint *endpoint, const struct own_daemon *own, struct call *call,
                  const char *body, struct error *err)
{
	if (perform(call, endpoint, body, err) < 0)
		return explain_failure(call, own, err);
	return report(call);
}

/* A daemon for this one run. */
static int run_with_own_daemon(struct call *call, const char *body, struct error *err)
{
	struct own_daemon *own = own_daemon_start(call->interrupt_fd, err);
	struct endpoint endpoint = {0};
	int status;

	if (!own)
		return explain_failure(call, NULL, err);
	endpoint.socket = xstrdup(own_daemon_socket(own));
	endpoint.url = xstrdup("http://localhost");
	status = run_at(&endpoint, own, call, body, err);
	endpoint_done(&endpoint);
	own_daemon_end(own);
	return status;
}

static int check_words(const struct run_options *options, const struct args *args,
                       struct error *err)
{
	size_t programs = args->words_count + (options->code ? 1 : 0);

	if (programs == 0)
		return error_set(err, ERR_INVALID, 0, "give a program: FILE, -c CODE or -");
	if (programs > 1)
		return error_set(err, ERR_INVALID, 0,
		                 "one program only; its arguments go after '--'");
	return 0;
}

/* Usage errors are those of the command line itself; a file that cannot be read is another kind. */
static int status_of(const struct error *err)
{
	return err->code == ERR_INVALID ? CLI_USAGE : CLI_OURS;
}

static int run(const void *values, const struct args *args, struct error *err)
{
	const struct run_options *options = values;
	const char *word = args->words_count > 0 ? args->words[0] : NULL;
	struct endpoint_source source = {.socket = options->socket, .url = options->url};
	cleanup_run_input struct run_input input = {0};
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_free char *body = NULL;
	cleanup_close int interrupt_fd = -1;
	cleanup_call struct call call = {0};

	if (check_words(options, args, err) < 0 || run_request_read(options, word, &input, err) < 0)
		return status_of(err);
	body = run_request_build(options, &input, args, err);
	endpoint_source_fill(&source);
	if (!body || endpoint_choose(&source, &endpoint, err) < 0)
		return status_of(err);
	interrupt_fd = interrupt_open();
	if (interrupt_fd < 0) {
		(void)error_set(err, ERR_SYSTEM, -interrupt_fd, "make a signal descriptor");
		return CLI_OURS;
	}
	call_init(&call, interrupt_fd, options->json);
	if (!endpoint.chosen && !endpoint_is_served(&endpoint))
		return run_with_own_daemon(&call, body, err);
	return run_at(&endpoint, NULL, &call, body, err);
}

#define AT(member) offsetof(struct run_options, member)

/* clang-format off: a row is one option, however long its line. */
static const struct option_row rows[] = {
	{"language",   'l', OPTION_TEXT,     AT(language),       "LANGUAGE",
         "python or shell; default: by file name or first line"							       },
	{"code",       'c', OPTION_TEXT,     AT(code),           "CODE",       "run this text instead of a file"              },
	{"timeout",    't', OPTION_DURATION, AT(timeout_us),     "TIME",       "time limit: 30, 1.5, 500ms, 5m"               },
	{"memory",     'm', OPTION_SIZE,     AT(memory_bytes),   "SIZE",       "memory limit: 512Mi, 1Gi"                     },
	{"cpu",        0,   OPTION_CPU,      AT(cpu_millicores), "CORES",      "processor share: 1, 0.5, 500m"                },
	{"disk",       0,   OPTION_SIZE,     AT(disk_bytes),     "SIZE",       "room for files: 256Mi"                        },
	{"processes",  0,   OPTION_NUMBER,   AT(processes),      "N",
         "processes and threads alive at a time"									      },
	{"max-output", 0,   OPTION_SIZE,     AT(output_bytes),   "SIZE",       "kept output of each stream: 1Mi"              },
	{"env",        'e', OPTION_LIST,     AT(env),            "NAME=VALUE",
         "set an environment variable; may be repeated"								       },
	{"file",       'f', OPTION_LIST,     AT(files),          "NAME=PATH",
         "put a file into the workspace; may be repeated"								     },
	{"stdin",      'i', OPTION_TEXT,     AT(stdin_path),     "FILE",
         "standard input of the program; '-': our own"									},
	{"json",       0,   OPTION_FLAG,     AT(json),           NULL,         "print the result object instead of the output"},
	{"socket",     0,   OPTION_TEXT,     AT(socket),         "PATH",       "the daemon's Unix socket"                     },
	{"url",        0,   OPTION_TEXT,     AT(url),            "URL",        "the daemon's address: http://127.0.0.1:8000"  },
};
/* clang-format on */

const struct command command_run = {
	.name = "run",
	.arguments = "(FILE | -c CODE | -) [-- ARGUMENT...]",
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
