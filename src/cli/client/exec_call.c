/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/exec_call.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cancel_io.h"
#include "base/plain.h"
#include "cli/client/daemon.h"
#include "cli/client/interrupt.h"
#include "client/millibox.h"

static int write_out(struct exec_call *call, int out, const char *data, size_t len)
{
	if (out == STDOUT_FILENO && len > 0)
		call->in_line = data[len - 1] != '\n';
	call->failure = cancel_write(call->interrupt_fd, out, data, len);
	return call->failure < 0;
}

static int on_output(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	return write_out(ctx, stream == MILLIBOX_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, len);
}

/* A package may have written it, and who installs one does not expect it to act. */
static int on_install(void *ctx, enum millibox_stream stream, const char *data, size_t len)
{
	cleanup_buf struct buf text = BUF_INIT(SIZE_MAX / 2);

	if (isatty(STDERR_FILENO) != 1)
		return on_output(ctx, stream, data, len);
	if (plain_add(&text, data, len, true) < 0)
		return -ENOMEM;
	return on_output(ctx, stream, text.data ? text.data : "", text.len);
}

/* On a line of its own. One without a text, such as an image, is not printed. */
static int on_value(void *ctx, const char *bundle)
{
	struct exec_call *call = ctx;
	json_auto_t *object = daemon_parse(bundle);
	const json_t *text = json_object_get(object, "text/plain");
	cleanup_free char *line =
		json_is_string(text)
			? xasprintf("%s%s\n", call->in_line ? "\n" : "", json_string_value(text))
			: NULL;

	return line ? write_out(call, STDOUT_FILENO, line, strlen(line)) : 0;
}

void exec_call_init(struct exec_call *call, int interrupt_fd, bool quiet)
{
	*call = (struct exec_call){.interrupt_fd = interrupt_fd, .quiet = quiet};
}

void exec_call_done(struct exec_call *call)
{
	json_decref(call->result);
	json_decref(call->problem);
}

static void prepare(struct exec_call *call, struct millibox_client *client,
                    struct millibox_request *request)
{
	(void)millibox_request_on_output(request, call->quiet ? NULL : on_output, call);
	(void)millibox_request_on_install(request, call->quiet ? NULL : on_install, call);
	(void)millibox_request_on_value(request, call->values ? on_value : NULL, call);
	(void)millibox_cancel_on(client, call->interrupt_fd);
}

/* All but the streams, which are printed already and may be long. */
static json_t *read_fields(const struct exec_call *call, const struct millibox_result *result)
{
	static const char *const names[] = {"status",  "exit_code", "limit",
	                                    "denials", "warnings",  "session_reset",
	                                    "result",  "error",     "why"};
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *value = daemon_parse(millibox_result_field(result, names[i]));

		(void)json_object_set_new(object, names[i], value ? value : json_null());
	}
	if (call->values)
		(void)json_object_set_new(object, "results",
		                          daemon_parse(millibox_result_field(result, "results")));
	return object;
}

/* Of a call that returned @r. */
static int finish(struct exec_call *call, struct millibox_client *client, int r, struct error *err)
{
	if (r < 0) {
		call->problem = daemon_parse(millibox_error_json(client));
		r = call->problem ? 0 : daemon_fail(client, err);
	}
	/* What follows, such as the end of a session, is not to be interrupted. */
	(void)millibox_cancel_on(client, -1);
	if (r < 0 && call->failure < 0) {
		error_clear(err);
		return error_set(err, ERR_PROTOCOL, -call->failure,
		                 "cannot write the program's output");
	}
	return r;
}

int exec_call_run(struct exec_call *call, struct millibox_client *client,
                  struct millibox_session *session, struct millibox_request *request,
                  struct error *err)
{
	struct millibox_result *result = NULL;
	int r;

	prepare(call, client, request);
	r = session ? millibox_session_run(session, request, &result)
	            : millibox_run(client, request, &result);
	if (r == 0)
		call->result = call->quiet ? daemon_parse(millibox_result_json(result))
		                           : read_fields(call, result);
	millibox_result_free(result);
	return finish(call, client, r, err);
}

int exec_call_follow(struct exec_call *call, struct millibox_client *client,
                     const char *execution_id, bool wait, struct error *err)
{
	struct millibox_request *request = millibox_request_new(NULL);
	int r;

	prepare(call, client, request);
	r = millibox_follow(client, execution_id, request, wait, NULL);
	millibox_request_free(request);
	return finish(call, client, r, err);
}

int exec_call_install(struct exec_call *call, struct millibox_client *client,
                      struct millibox_session *session, struct millibox_request *request,
                      struct error *err)
{
	char *installed = NULL;
	int r;

	prepare(call, client, request);
	r = session ? millibox_session_install(session, request, &installed)
	            : millibox_install(client, request, &installed);
	call->result = daemon_parse(installed);
	millibox_free(installed);
	return finish(call, client, r, err);
}

int exec_call_signal(const struct exec_call *call)
{
	return call->failure == -EPIPE ? SIGPIPE : interrupt_taken(call->interrupt_fd);
}
