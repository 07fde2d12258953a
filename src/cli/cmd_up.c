/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/install_paths.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/client/background.h"
#include "cli/client/daemon.h"
#include "cli/client/interrupt.h"
#include "cli/client/listener.h"
#include "cli/client/program.h"
#include "cli/daemon_status.h"
#include "cli/message.h"
#include "client/millibox.h"
#include "daemon/exit_status.h"

#define SETTINGS_MAX (1 * MIB)
/* The state directory is the daemon's, which root's log must not be. */
#define ROOT_LOG "/var/log/milliboxd.log"
#define LOG_NAME "milliboxd.log"
/* Its path and four options with a value, and "--dump-config --json". */
#define ARGS_MAX 12

struct up_options {
	const char *config;
	const char *listen;
	const char *socket;
	const char *isolation;
	const char *log;
	bool detach;
	bool json;
};

struct up {
	const struct up_options *options;
	const char *argv[ARGS_MAX]; /* of milliboxd */
	size_t argc;
	char *program;    /* owned */
	char *config;     /* owned: a daemon in the background has another working directory */
	json_t *settings; /* owned: what the daemon will use */
	const char *socket;
};

static void add_flag(struct up *up, const char *flag, const char *value)
{
	if (!value)
		return;
	up->argv[up->argc++] = flag;
	up->argv[up->argc++] = value;
}

/* An installed daemon of root is that of the system: it has the settings that the unit would give
 * it. What is there and cannot be read is the daemon's error. Return: NULL: none. */
static const char *system_settings(const struct up *up)
{
	if (geteuid() != 0 || !str_equal(up->program, MILLIBOX_BINDIR "/milliboxd"))
		return NULL;
	return access(MILLIBOX_SETTINGS, F_OK) < 0 && errno == ENOENT ? NULL : MILLIBOX_SETTINGS;
}

static int make_argv(struct up *up, struct error *err)
{
	const struct up_options *o = up->options;
	const char *config;

	up->program = program_find("milliboxd", err);
	if (!up->program)
		return -1;
	config = o->config ? o->config : system_settings(up);
	if (config)
		up->config = realpath(config, NULL);
	if (config && !up->config)
		return error_set(err, ERR_INVALID, errno, "--config: %s", config);
	up->argv[up->argc++] = up->program;
	add_flag(up, "--config", up->config);
	add_flag(up, "--listen", o->listen);
	add_flag(up, "--socket", o->socket);
	add_flag(up, "--isolation", o->isolation);
	return 0;
}

/* Of the file, the environment and the options together. Return: CLI_OK, another status: the daemon
 * said what is wrong, or -1. */
static int read_settings(struct up *up, struct error *err)
{
	cleanup_buf struct buf out = BUF_INIT(SETTINGS_MAX);
	const char *argv[ARGS_MAX];
	int status = 0;

	memcpy(argv, up->argv, sizeof(argv));
	argv[up->argc] = "--dump-config";
	argv[up->argc + 1] = "--json";
	if (program_read(argv, &out, &status, err) < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == DAEMON_BAD_CONFIG)
		return CLI_USAGE;
	up->settings = json_loadb(out.data ? out.data : "", out.len, 0, NULL);
	if (!up->settings)
		return error_set(err, ERR_PROTOCOL, 0, "cannot parse the settings of milliboxd");
	up->socket = message_text(up->settings, "socket");
	if (!*up->socket)
		return error_set(err, ERR_INVALID, 0,
		                 "these settings have no Unix socket, which commands use: set "
		                 "'socket', or start milliboxd itself");
	return CLI_OK;
}

/* Return: CLI_OK; CLI_FAILED: none listens yet; or -1. */
static int find_running(const struct up *up, struct error *err)
{
	const struct up_options *o = up->options;
	cleanup_daemon struct millibox_client *client =
		daemon_open(&(struct daemon_options){.socket = up->socket});
	cleanup_listener struct listener listener = LISTENER_INIT;
	int found = listener_find(client, &listener, err);

	if (found <= 0)
		return found < 0 ? -1 : CLI_FAILED;
	/* It may have been started with other settings. */
	if (!o->detach || o->config || o->listen || o->isolation || o->log)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "a daemon listens at %s already; stop it with 'millibox down'",
		                 up->socket);
	message_show("the daemon runs already");
	return CLI_OK;
}

static int show_status(const struct up *up, struct error *err)
{
	cleanup_daemon struct millibox_client *client =
		daemon_open(&(struct daemon_options){.socket = up->socket});
	json_auto_t *status = NULL;

	if (daemon_status_read(client, &status, err) < 0)
		return -1;
	return daemon_status_show(status, up->options->json);
}

/* Return: owned, or NULL with *err. */
static char *log_path(const struct up *up, struct error *err)
{
	const char *state = message_text(up->settings, "state_dir");
	char cwd[PATH_MAX];
	int r;

	if (up->options->log) {
		if (up->options->log[0] == '/' || !getcwd(cwd, sizeof(cwd)))
			return xstrdup(up->options->log);
		return xasprintf("%s/%s", cwd, up->options->log);
	}
	if (geteuid() == 0)
		return xstrdup(ROOT_LOG);
	r = file_mkdir_parents(state, 0700);
	if (r >= 0)
		return xasprintf("%s/" LOG_NAME, state);
	(void)error_set(err, ERR_UNAVAILABLE, -r, "create directory %s", state);
	return NULL;
}

/* Commands find it by themselves unless the settings name a socket of their own. */
static void explain_use(const struct up *up)
{
	cleanup_daemon struct millibox_client *client = daemon_open(&(struct daemon_options){0});
	const char *address = NULL;

	message_show("milliboxd runs in the background; 'millibox down' stops it");
	if (millibox_find(client, &address) < 0 || !str_equal(address, up->socket))
		message_show("for other commands: export MILLIBOX_SOCKET=%s", up->socket);
}

static int start_in_background(const struct up *up, struct error *err)
{
	cleanup_free char *log = log_path(up, err);
	cleanup_close int interrupt_fd = log ? interrupt_open(err) : -1;
	const struct background_job job = {up->argv, log, interrupt_fd};

	if (interrupt_fd < 0)
		return -1;
	if (background_start(&job, err) < 0)
		return exit_status_of_failure(interrupt_fd, err);
	explain_use(up);
	return show_status(up, err);
}

/* Becomes the daemon: its log is our standard error, and Ctrl-C its end. */
static int start_here(const struct up *up, struct error *err)
{
	cleanup_free char **environment = background_environment(NULL);

	(void)execve(up->program, (char *const *)up->argv, environment);
	return error_set(err, ERR_SYSTEM, errno, "start %s", up->program);
}

static int start_daemon(struct up *up, struct error *err)
{
	int status = make_argv(up, err);

	if (status == 0)
		status = read_settings(up, err);
	if (status != CLI_OK)
		return status;
	status = find_running(up, err);
	if (status == CLI_OK)
		return show_status(up, err);
	if (status < 0)
		return -1;
	return up->options->detach ? start_in_background(up, err) : start_here(up, err);
}

static int run_up(const void *values, const struct args *args attr_unused, struct error *err)
{
	struct up up = {.options = values};
	int status;

	if (!up.options->detach && (up.options->log || up.options->json))
		return error_set(err, ERR_INVALID, 0, "--log and --json require --detach");
	status = start_daemon(&up, err);
	free(up.program);
	free(up.config);
	json_decref(up.settings);
	return status;
}

#define AT(member) offsetof(struct up_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"detach",    'd', OPTION_FLAG, AT(detach),    NULL,        "start it in the background, and return when it is ready"},
	{"isolation", 0,   OPTION_TEXT, AT(isolation), "MODE",      "strict (the default) or best-effort"},
	{"listen",    0,   OPTION_TEXT, AT(listen),    "ADDR:PORT", "TCP address of the API; \"\" for none; default: 127.0.0.1:8000"},
	{"config",    0,   OPTION_TEXT, AT(config),    "FILE",      "settings file of the daemon; default for root, of an installed daemon: that of the systemd unit, if it exists"},
	{"socket",    0,   OPTION_TEXT, AT(socket),    "PATH",      "the daemon's Unix socket"},
	{"log",       0,   OPTION_TEXT, AT(log),       "FILE",      "append its log to this file; default: milliboxd.log in its state directory, or " ROOT_LOG " for root"},
	{"json",      0,   OPTION_FLAG, AT(json),      NULL,        "print the daemon's status as JSON"},
};
/* clang-format on */

COMMAND(up, "up", "", "Start a daemon for the commands of this user", run_up, rows,
        struct up_options,
        .text = "Without --detach it runs in this terminal, until Ctrl-C. With it, the daemon "
                "outlives the command; if one runs already, its status is shown. Settings come "
                "from --config and the environment (MILLIBOX_...), see millibox.yaml(5). "
                "--config /dev/null means no file.\n");
