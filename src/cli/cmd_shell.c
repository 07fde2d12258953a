/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/client/attach.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/own_session.h"
#include "cli/run_request.h"
#include "cli/run_terminal.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"

/* In a box without bash, its sh. The prompt is set here: a bash that runs a script drops it. */
#define SHELL_CODE                                                                                 \
	"command -v bash >/dev/null && PS1='\\w\\$ ' exec bash -i\n"                               \
	"PS1='$ ' exec sh -i\n"
#define COMMAND_CODE "exec \"$@\"\n"

struct shell {
	const struct run_options *options;
	struct own_daemon *own;           /* owned; NULL: the daemon is not ours */
	struct millibox_client *client;   /* owned */
	struct millibox_session *session; /* owned */
	char *execution_id;               /* owned; NULL: not started */
};

static int add_env(const struct run_options *options, struct millibox_request *request,
                   struct error *err)
{
	for (size_t i = 0; i < options->env.count; i++) {
		const char *text = options->env.items[i], *value = strchr(text, '=');
		cleanup_free char *name = value ? xmemdup0(text, (size_t)(value - text)) : NULL;

		if (!name || !*name ||
		    millibox_request_put(request, "env_vars", name, value + 1) < 0)
			return error_field(err, "env", "'%.80s' is not NAME=VALUE", text);
	}
	return 0;
}

static int fill_request(struct millibox_request *request, const struct run_options *options,
                        const struct args *args, struct error *err)
{
	(void)millibox_request_set(request, "language", "shell");
	(void)millibox_request_set(request, "code", args->rest_count ? COMMAND_CODE : SHELL_CODE);
	for (size_t i = 0; i < args->rest_count; i++)
		if (millibox_request_add(request, "args", args->rest[i]) < 0)
			return error_set(err, ERR_INVALID, 0, "the command is not UTF-8");
	return add_env(options, request, err);
}

static int start_program(struct shell *s, const struct args *args, struct error *err)
{
	cleanup_request struct millibox_request *request = millibox_request_new(NULL);

	if (fill_request(request, s->options, args, err) < 0)
		return -1;
	return run_terminal_start(s->client, s->session, request, &s->execution_id, err);
}

/* As a terminal that is closed ends what runs on it. */
static void cancel_program(const struct shell *s)
{
	struct error err = {0};

	if (millibox_execution_cancel(s->client, s->execution_id) == 0 ||
	    millibox_error_json(s->client))
		return;
	(void)daemon_fail(s->client, &err);
	message_show_error(&err);
}

static int converse(struct shell *s, struct error *err)
{
	json_auto_t *exit = NULL;
	int r = attach_run(s->client, s->execution_id, &exit, err);

	if (r == 0)
		return exit_status_of_result(exit);
	cancel_program(s);
	return r > 0 ? CLI_SIGNAL + r : -1;
}

static int run_in_session(struct shell *s, const struct args *args, struct error *err)
{
	int status = start_program(s, args, err);

	return status == CLI_OK ? converse(s, err) : status;
}

static int run_shell(const void *values, const struct args *args, struct error *err)
{
	struct shell s = {.options = values};
	const char *id = args->words_count ? args->words[0] : NULL;
	int status;

	if (args->words_count > 1)
		return error_set(err, ERR_INVALID, 0,
		                 "expected at most one session id; a command follows --");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(err, ERR_INVALID, 0,
		                 "shell needs a terminal; use 'millibox session exec' or 'run'");
	s.client = daemon_open(&s.options->at);
	/* A session lives in a daemon that runs already. Ctrl-C ends us while we wait for one. */
	status = id ? daemon_require(s.client, err)
	            : start_daemon_find(&s.options->at, s.client, -1, &s.own, err);
	if (status == 0)
		status = id ? daemon_session(s.client, id, &s.session, err)
		            : own_session_create(s.client, s.options, &s.session, err);
	if (status == CLI_OK)
		status = run_in_session(&s, args, err);
	if (id)
		millibox_session_free(s.session);
	else
		own_session_delete(s.client, s.session);
	own_daemon_end(s.own);
	millibox_client_free(s.client);
	millibox_free(s.execution_id);
	return status;
}

#define AT(member) offsetof(struct run_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"template", 0, OPTION_TEXT, AT(template_id), "TEMPLATE", "template of the new session's box"},
	LIMIT_ROWS(AT),
	ENV_ROW(AT),
	POLICY_ROWS(AT),
	ISOLATION_ROW(AT(at)),
	ENDPOINT_ROWS(AT(at)),
};
/* clang-format on */

COMMAND(shell, "shell", "[SESSION] [-- COMMAND [ARGUMENT...]]", "Open a terminal in a session",
        run_shell, rows, struct run_options,
        .text = "Without SESSION a new one is made, and deleted at the end; if no daemon listens "
                "at the default socket, one is started for it. COMMAND is bash by default.\n"
                "All keys go to the program, Ctrl-C included; it ends when the terminal is closed. "
                "The exit\n"
                "status is the program's.\n");
