/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/attach.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/size.h"
#include "cli/client/daemon.h"
#include "cli/client/ws_request.h"
#include "client/transport.h"
#include "http/ws_client.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/*
 * Theory of operation. In raw mode the terminal makes no signals of keys: they are bytes for the
 * program, whose terminal does. Signals from elsewhere arrive at a descriptor, so that the modes
 * are restored before they end us.
 *
 * Nothing is read while the daemon takes nothing: the user's terminal waits, as at a slow line.
 */

#define PIECE       4096
#define WAITING_MAX (64 * KIB)
#define MESSAGE_MAX (1 * MIB) /* the daemon's have less */
#define OPEN_US     (30 * 1000 * 1000ULL)

enum source {
	SOURCE_KEYS,
	SOURCE_SIGNALS,
	SOURCE_DAEMON,
	SOURCE_COUNT
};

struct attach {
	struct ws_client *ws;
	int signals;
	bool keys_ended;
	int failure;  /* negative errno of our output */
	json_t *exit; /* owned */
};

void attach_size(int *ret_rows, int *ret_cols)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	*ret_rows = size.ws_row < 1000 ? size.ws_row : 1000;
	*ret_cols = size.ws_col < 1000 ? size.ws_col : 1000;
}

static void send_size(struct attach *a)
{
	char text[64];
	int rows, cols;

	attach_size(&rows, &cols);
	(void)snprintf(text, sizeof(text), "{\"resize\": {\"rows\": %d, \"cols\": %d}}", rows,
	               cols);
	ws_client_send_text(a->ws, text, strlen(text));
}

static void on_binary(void *ctx, const char *data, size_t len)
{
	struct attach *a = ctx;

	if (a->failure == 0)
		a->failure = fd_write_all(STDOUT_FILENO, data, len);
}

static void on_text(void *ctx, const char *text, size_t len)
{
	struct attach *a = ctx;
	json_t *message = json_loadb(text, len, 0, NULL);
	json_t *exit = json_object_get(message, "exit");

	if (json_is_object(exit) && !a->exit)
		a->exit = json_incref(exit);
	json_decref(message);
}

static void read_keys(struct attach *a)
{
	char data[PIECE];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n > 0)
		ws_client_send_binary(a->ws, data, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		a->keys_ended = true;
}

/* Return: the signal that ends us, or 0. */
static int read_signal(struct attach *a)
{
	struct signalfd_siginfo info;

	if (read(a->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo != SIGWINCH)
		return (int)info.ssi_signo;
	send_size(a);
	return 0;
}

/* Return: 0: the connection has ended; a signal's number; or a negative errno. */
static int converse(struct attach *a)
{
	for (;;) {
		bool reads = !a->keys_ended && ws_client_waiting(a->ws) < WAITING_MAX;
		struct pollfd fds[SOURCE_COUNT] = {
			[SOURCE_KEYS] = {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
			[SOURCE_SIGNALS] = {.fd = a->signals, .events = POLLIN},
			[SOURCE_DAEMON] = {.fd = ws_client_fd(a->ws),
		                           .events = ws_client_wants(a->ws)},
		};
		int signo = 0;

		/* What came with the response is not in the socket. */
		if (ws_client_pump(a->ws) != 0)
			return 0;
		if (a->failure < 0)
			return a->failure;
		if (poll(fds, SOURCE_COUNT, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[SOURCE_SIGNALS].revents)
			signo = read_signal(a);
		if (signo)
			return signo;
		if (fds[SOURCE_KEYS].revents)
			read_keys(a);
	}
}

static int attach_raw(struct attach *a, struct error *err)
{
	struct termios before, raw;
	int r;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return error_set(err, ERR_INVALID, errno, "standard input is not a terminal");
	raw = before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return error_set(err, ERR_SYSTEM, errno, "set the modes of the terminal");
	send_size(a); /* it may have changed since the execution started */
	r = converse(a);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "write to the terminal: %s", strerror(-r));
	if (r == 0 && !a->exit)
		return error_set(
			err, ERR_UNAVAILABLE, 0,
			"the connection to the daemon has ended; the program may still run");
	return r;
}

int attach_run(struct millibox_client *client, const char *execution_id, json_t **ret_exit,
               struct error *err)
{
	const struct endpoint *endpoint = transport_endpoint(client);
	const int signals[] = {SIGWINCH, SIGINT, SIGTERM, SIGHUP};
	struct attach a = {0};
	cleanup_free char *path = xasprintf("/api/v1/executions/%s/attach", execution_id);
	struct ws_client_request request = {0};
	const struct ws_client_events events = {
		.ctx = &a, .on_text = on_text, .on_binary = on_binary};
	struct ws_client_refusal refusal = {0};
	cleanup_close int fd = fd_signalfd(signals, ARRAY_SIZE(signals));
	int r;

	a.signals = fd;
	if (!endpoint)
		return daemon_fail(client, err);
	ws_request_fill(endpoint, &request);
	request.path = path;
	request.max_message = MESSAGE_MAX;
	request.timeout_us = OPEN_US;
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "create a signalfd");
	a.ws = ws_client_open(&request, &events, &refusal, err);
	free(refusal.body);
	if (!a.ws)
		return -1;
	r = attach_raw(&a, err);
	ws_client_free(a.ws);
	*ret_exit = a.exit;
	return r;
}
