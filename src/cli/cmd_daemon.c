/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "cli/client/interrupt.h"
#include "cli/client/listener.h"
#include "cli/common_options.h"
#include "cli/daemon_status.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "client/millibox.h"

/* The daemon that commands use: what it is, and its end. cmd_up.c starts one. */

/* Until then a stopping daemon without work has ended. */
#define QUIET_MS 1000

struct down_options {
	const char *socket;
	bool now;
};

static int run_status(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct common_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->at);
	json_auto_t *status = NULL;

	if (daemon_status_read(client, &status, err) < 0)
		return -1;
	return daemon_status_show(status, options->json);
}

/* Only a process that we may end, and that stays ended. */
static int check_listener(const struct listener *listener, const char *address, struct error *err)
{
	if (address[0] != '/')
		return error_set(err, ERR_INVALID, 0,
		                 "%s names no process; stop the daemon on its host", address);
	if (listener->pid <= 0)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "the daemon at %s is in another PID namespace: stop it there, "
		                 "for example by stopping its container",
		                 address);
	if (!listener_is_daemon(listener))
		return error_set(err, ERR_INVALID, 0,
		                 "process %d, which listens at %s, is not milliboxd",
		                 (int)listener->pid, address);
	if (listener_is_unit(listener))
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "systemd runs this daemon and would start it again; use "
		                 "'systemctl stop milliboxd'");
	return 0;
}

static int send_signal(const struct listener *listener, int signo, struct error *err)
{
	int r = fd_pidfd_kill(listener->pidfd, signo);

	if (r == -EPERM)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "process %d belongs to another user; use 'sudo millibox down'",
		                 (int)listener->pid);
	return r < 0 && r != -ESRCH
	               ? error_set(err, ERR_SYSTEM, -r, "signal process %d", (int)listener->pid)
	               : 0;
}

static int wait_for_end(const struct listener *listener, int interrupt_fd, struct error *err)
{
	struct pollfd ends[] = {{.fd = listener->pidfd, .events = POLLIN},
	                        {.fd = interrupt_fd, .events = POLLIN}};
	int timeout_ms = QUIET_MS, r;

	while (!ends[0].revents && !ends[1].revents) {
		r = poll(ends, ARRAY_SIZE(ends), timeout_ms);
		if (r < 0 && errno != EINTR)
			return error_set(err, ERR_SYSTEM, errno, "poll");
		if (r != 0)
			continue;
		timeout_ms = -1;
		message_show("running executions may end first; 'millibox down --now' kills them");
	}
	return ends[0].revents ? CLI_OK : CLI_SIGNAL + interrupt_taken(interrupt_fd);
}

static int stop_listener(const struct listener *listener, bool now, struct error *err)
{
	cleanup_close int interrupt_fd = interrupt_open(err);
	int status;

	if (interrupt_fd < 0 || send_signal(listener, SIGTERM, err) < 0)
		return -1;
	/* Another signal: two equal ones can arrive as one. */
	if (now && send_signal(listener, SIGINT, err) < 0)
		return -1;
	status = wait_for_end(listener, interrupt_fd, err);
	if (status == CLI_OK)
		message_show("milliboxd (process %d) has ended", (int)listener->pid);
	return status;
}

static int run_down(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct down_options *options = values;
	cleanup_daemon struct millibox_client *client =
		daemon_open(&(struct daemon_options){.socket = options->socket});
	cleanup_listener struct listener listener = LISTENER_INIT;
	const char *address = NULL;
	int found = listener_find(client, &listener, err);

	if (found < 0 || millibox_find(client, &address) < 0)
		return -1;
	if (found == 0) {
		message_show("no daemon listens at %s", address);
		return CLI_OK;
	}
	if (check_listener(&listener, address, err) < 0)
		return -1;
	return stop_listener(&listener, options->now, err);
}

#define AT(member) offsetof(struct down_options, member)

/* clang-format off */
static const struct option_row down_rows[] = {
	{"now",    0, OPTION_FLAG, AT(now),    NULL,   "kill running executions instead of letting them end"},
	{"socket", 0, OPTION_TEXT, AT(socket), "PATH", "the daemon's Unix socket"},
};
/* clang-format on */

COMMAND(status, "status", "", "Show which daemon commands use, and whether it is ready", run_status,
        resource_rows, struct common_options,
        .text = "The exit status is 0 if it is ready, and 1 if none listens or it is not "
                "ready.\n");
COMMAND(down, "down", "", "Stop the daemon that commands use", run_down, down_rows,
        struct down_options,
        .text = "It waits until the daemon has ended. Its sessions end with it, unless "
                "sessions.keep_on_stop is set. Without a daemon there is nothing to do, and the "
                "exit status is 0.\n");
