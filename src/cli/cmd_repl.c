/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/cancel_io.h"
#include "base/fd.h"
#include "base/size.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/client/exec_call.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/own_session.h"
#include "cli/repl_input.h"
#include "cli/run_request.h"
#include "cli/run_send.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"

#define PROGRAM_MAX  (1 * MIB)
#define HISTORY_NAME "repl_history"

struct repl_options {
	struct run_options run;
	const char *figures;
};

struct repl {
	const struct repl_options *options;
	struct own_daemon *own;           /* owned; NULL: the daemon is not ours */
	struct millibox_client *client;   /* owned */
	struct millibox_session *session; /* owned */
	int interrupt_fd;
	unsigned figures; /* saved so far */
};

/* In XDG's directory for state. Return: owned; NULL: there is no home. */
static char *history_path(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	cleanup_free char *dir = state && state[0] == '/' ? xasprintf("%s/millibox", state)
	                         : home && home[0] == '/'
	                                 ? xasprintf("%s/.local/state/millibox", home)
	                                 : NULL;

	if (!dir)
		return NULL;
	/* Its parents exist wherever a program has kept state; else there is no history. */
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return NULL;
	return xasprintf("%s/" HISTORY_NAME, dir);
}

/* Return: owned name of the file; NULL: it has none, or it could not be written. */
static char *save_figure(struct repl *r, const json_t *bundle)
{
	const json_t *image = json_object_get(bundle, "image/png");
	const char *dir = r->options->figures ? r->options->figures : ".";
	cleanup_free char *data = NULL, *name = NULL;
	cleanup_close int fd = -1;
	size_t len = 0;

	if (!json_is_string(image))
		return NULL;
	data = base64_decode(json_string_value(image), json_string_length(image), &len);
	while (fd < 0) {
		free(name);
		name = xasprintf("%s/figure-%u.png", dir, ++r->figures);
		fd = fd_open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd != -EEXIST)
			break;
	}
	if (!data || fd < 0 || cancel_write(r->interrupt_fd, fd, data, len) < 0) {
		message_show("could not save the figure as %s", name);
		return NULL;
	}
	return TAKE_PTR(name);
}

static void show_figures(struct repl *r, const json_t *result)
{
	const json_t *bundle;
	size_t i;

	json_array_foreach (json_object_get(result, "results"), i, bundle) {
		cleanup_free char *name = save_figure(r, bundle);

		if (name)
			(void)printf("[figure saved as %s]\n", name);
	}
}

/* Return: whether to go on. */
static bool evaluate(struct repl *r, const struct buf *program)
{
	cleanup_request struct millibox_request *request = millibox_request_new(NULL);
	cleanup_exec_call struct exec_call call = {0};
	struct error err = {0};

	if (!utf8_is_valid(program->data, program->len)) {
		message_show("the program is not UTF-8");
		return true;
	}
	(void)millibox_request_set_bytes(request, "code", program->data, program->len);
	exec_call_init(&call, r->interrupt_fd, false);
	call.values = true;
	(void)run_send_to(&(struct run_send){.request = request}, r->client, r->session, &call,
	                  &err);
	if (error_is_set(&err)) {
		message_show_error(&err);
		return false;
	}
	if (call.in_line)
		(void)putchar('\n');
	show_figures(r, call.result);
	if (json_is_true(json_object_get(call.result, "session_reset")))
		message_show("the session's variables are lost: it continues with a new runner");
	(void)fflush(stdout);
	return !call.problem;
}

static int converse(struct repl *r)
{
	cleanup_free char *history = history_path();
	cleanup_buf struct buf program = BUF_INIT(PROGRAM_MAX);
	struct repl_input *in;
	enum repl_read what;
	bool goes_on = true;

	in = repl_input_new(r->interrupt_fd, history);
	while (goes_on && (what = repl_input_read(in, &program)) != REPL_END)
		if (what == REPL_PROGRAM)
			goes_on = evaluate(r, &program);
	repl_input_free(in);
	return goes_on ? CLI_OK : CLI_ERROR;
}

static int converse_in(struct repl *r, const char *id, struct error *err)
{
	int status = id ? daemon_session(r->client, id, &r->session, err)
	                : own_session_create(r->client, &r->options->run, &r->session, err);

	if (status == CLI_OK)
		status = converse(r);
	if (id)
		millibox_session_free(r->session);
	else
		own_session_delete(r->client, r->session);
	return status;
}

/* A session lives in a daemon that runs already; a new one ends with the conversation. */
static int find_daemon(struct repl *r, const char *id, struct error *err)
{
	return id ? daemon_require(r->client, err)
	          : start_daemon_find(&r->options->run.at, r->client, r->interrupt_fd, &r->own,
	                              err);
}

static int run_repl(const void *values, const struct args *args, struct error *err)
{
	struct repl r = {.options = values, .interrupt_fd = -1};
	const char *id = args->words_count ? args->words[0] : NULL;
	int status;

	if (args->words_count > 1)
		return error_set(err, ERR_INVALID, 0, "expected at most one session id");
	(void)setlocale(LC_CTYPE, "");
	r.interrupt_fd = interrupt_open(err);
	if (r.interrupt_fd < 0)
		return -1;
	r.client = daemon_open(&r.options->run.at);
	status = find_daemon(&r, id, err) == 0 ? converse_in(&r, id, err)
	                                       : exit_status_of_failure(r.interrupt_fd, err);
	own_daemon_end(r.own);
	millibox_client_free(r.client);
	(void)fd_close(r.interrupt_fd);
	return status;
}

#define AT(member)     offsetof(struct repl_options, member)
#define AT_RUN(member) AT(run.member)

/* clang-format off */
static const struct option_row rows[] = {
	{"language", 'l', OPTION_TEXT, AT(run.language),    "LANGUAGE", "language of the new session; default: python"},
	{"template", 0,   OPTION_TEXT, AT(run.template_id), "TEMPLATE", "template of the new session's box"},
	{"figures",  0,   OPTION_TEXT, AT(figures),         "DIR",      "save figures here; default: the current directory"},
	LIMIT_ROWS(AT_RUN),
	ENV_ROW(AT_RUN),
	POLICY_ROWS(AT_RUN),
	ISOLATION_ROW(AT(run.at)),
	ENDPOINT_ROWS(AT(run.at)),
};
/* clang-format on */

COMMAND(repl, "repl", "[SESSION]", "Type programs line by line into a session", run_repl, rows,
        struct repl_options,
        .text = "Without SESSION a new one is made, and deleted at the end; if no daemon listens "
                "at the default socket, one is started for it. A block ends with "
                "an empty line. Ctrl-C interrupts the program, or drops what was typed; Ctrl-D "
                "ends the conversation. Figures are saved as PNG files. The history is kept in "
                "the user's state directory.\n");
