/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/client/forward.h"
#include "cli/client/interrupt.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "client/millibox.h"

/*
 * Theory of operation. Each accepted connection has its own process, which ends with this one: a
 * slow or broken connection affects no other. A process that learns that the session is gone
 * reports it over a pipe, which ends the command.
 */

#define FORWARDS_MAX 16
#define BACKLOG      128

struct port_options {
	struct common_options common;
	const char *address;
};

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct local_forward {
	uint16_t port;  /* in the box */
	uint16_t local; /* 0: the kernel chooses */
	int fd;         /* owned: listens */
};

struct port_command {
	const struct port_options *options;
	const char *session, *address;
	struct millibox_client *client; /* owned */
	struct local_forward forwards[FORWARDS_MAX];
	size_t count;
	int gone[2]; /* owned: a byte means that the session is gone */
};

static void command_done(struct port_command *c)
{
	for (size_t i = 0; i < c->count; i++)
		(void)fd_close(c->forwards[i].fd);
	(void)fd_close(c->gone[0]);
	(void)fd_close(c->gone[1]);
	millibox_client_free(c->client);
}

static int parse_number(const char *text, size_t len, uint64_t min, uint16_t *ret_port)
{
	cleanup_free char *digits = xstrndup(text, len);
	uint64_t value = 0;

	if (parse_u64(digits, &value) < 0 || value < min || value > UINT16_MAX)
		return -EINVAL;
	*ret_port = (uint16_t)value;
	return 0;
}

/* "PORT" or "PORT:LOCALPORT". */
static int parse_forward(const char *word, struct local_forward *ret_forward, struct error *err)
{
	size_t len = strcspn(word, ":");
	const char *local = word[len] ? word + len + 1 : word;
	struct local_forward f = {.fd = -1};

	if (parse_number(word, len, 1, &f.port) < 0 ||
	    parse_number(local, strlen(local), 0, &f.local) < 0)
		return error_set(err, ERR_INVALID, 0,
		                 "'%.40s' is not PORT or PORT:LOCALPORT, such as 8000:9000", word);
	*ret_forward = f;
	return 0;
}

/* Return: length, or 0: not an address. */
static socklen_t parse_address(const char *text, uint16_t port, union address *ret_address)
{
	*ret_address = (union address){0};
	if (inet_pton(AF_INET, text, &ret_address->in.sin_addr) == 1) {
		ret_address->in.sin_family = AF_INET;
		ret_address->in.sin_port = htons(port);
		return sizeof(ret_address->in);
	}
	if (inet_pton(AF_INET6, text, &ret_address->in6.sin6_addr) == 1) {
		ret_address->in6.sin6_family = AF_INET6;
		ret_address->in6.sin6_port = htons(port);
		return sizeof(ret_address->in6);
	}
	return 0;
}

static uint16_t bound_port(int fd)
{
	union address address = {0};
	socklen_t len = sizeof(address);

	if (getsockname(fd, &address.any, &len) < 0)
		return 0;
	return ntohs(address.any.sa_family == AF_INET ? address.in.sin_port
	                                              : address.in6.sin6_port);
}

static int listen_local(const struct port_command *c, struct local_forward *f, struct error *err)
{
	union address address;
	socklen_t len = parse_address(c->address, f->local, &address);
	const int yes = 1;

	if (len == 0)
		return error_set(err, ERR_INVALID, 0,
		                 "--address: '%.60s' is not an IP address, such as 127.0.0.1",
		                 c->address);
	f->fd = fd_socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (f->fd < 0)
		return error_set(err, ERR_SYSTEM, -f->fd, "make a socket");
	(void)setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(f->fd, &address.any, len) < 0 || listen(f->fd, BACKLOG) < 0)
		return error_set(
			err, ERR_UNAVAILABLE, errno,
			"cannot listen on port %u of %s: %s; give another local port, such "
			"as %u:0",
			f->local, c->address, strerror(errno), f->port);
	f->local = bound_port(f->fd);
	return 0;
}

/* Return: as resource_call. */
static int list_ports(const struct port_options *options, const char *session, json_t **ret_answer,
                      struct error *err)
{
	cleanup_free char *path = daemon_session_path(session, "/ports", err);
	const struct daemon_call call = {.method = "GET", .path = path};

	return path ? resource_call(&options->common, &call, ret_answer, err) : -1;
}

static const struct resource_column columns[] = {
	{"PORT", "port", NULL, 8},
	{"ADDRESS", "address", NULL, 0},
};

static const struct resource ports = {
	.list = "ports",
	RESOURCE_COLUMNS(columns),
};

static int print_ports(const struct port_options *options, const char *session, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = list_ports(options, session, &answer, err);

	if (answer)
		resource_print_list(&ports, answer, true);
	if (json_is_true(json_object_get(answer, "truncated")))
		message_show("the list is incomplete");
	return status;
}

/* In the child. */
static void serve_connection(const struct port_command *c, const struct local_forward *f, int local)
{
	json_auto_t *problem = NULL;
	char suffix[32];
	cleanup_free char *path = NULL;
	struct error err = {0};

	(void)snprintf(suffix, sizeof(suffix), "/ports/%u", f->port);
	path = daemon_session_path(c->session, suffix, &err);
	if (!path || forward_run(c->client, path, local, &problem, &err) == 0)
		return;
	/* One line: several processes may write at once. */
	if (problem)
		message_show("%s", message_text(problem, "error_detail"));
	else
		message_show_error(&err);
	if (str_equal(message_text(problem, "error_code"), error_text(ERR_SESSION_NOT_FOUND)))
		(void)!write(c->gone[1], "", 1);
}

static void accept_connection(const struct port_command *c, const struct local_forward *f)
{
	int local = fd_accept(f->fd);
	pid_t parent = getpid();
	pid_t pid;

	if (local < 0)
		return; /* it has left, or there are no descriptors: others may be accepted later */
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		/* Ends with the command, which has blocked its signals. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		if (getppid() == parent)
			serve_connection(c, f, local);
		(void)fflush(stderr);
		_exit(0);
	}
	if (pid < 0)
		message_show("cannot start a process: %s", strerror(errno));
	(void)fd_close(local);
}

static int accept_all(const struct port_command *c, int interrupt_fd, struct error *err)
{
	struct pollfd fds[FORWARDS_MAX + 2] = {
		{.fd = interrupt_fd, .events = POLLIN},
		{.fd = c->gone[0], .events = POLLIN},
	};

	for (size_t i = 0; i < c->count; i++)
		fds[i + 2] = (struct pollfd){.fd = c->forwards[i].fd, .events = POLLIN};
	for (;;) {
		if (poll(fds, (nfds_t)c->count + 2, -1) < 0 && errno != EINTR)
			return error_set(err, ERR_SYSTEM, errno, "wait for connections");
		if (fds[0].revents && interrupt_taken(interrupt_fd))
			return CLI_OK;
		if (fds[1].revents)
			return CLI_ERROR; /* the reason was printed */
		for (size_t i = 0; i < c->count; i++)
			if (fds[i + 2].revents)
				accept_connection(c, &c->forwards[i]);
	}
}

static void print_forwards(const struct port_command *c)
{
	bool is_ipv6 = strchr(c->address, ':') != NULL;
	json_auto_t *list = json_array();

	for (size_t i = 0; i < c->count; i++) {
		const struct local_forward *f = &c->forwards[i];

		if (!c->options->common.json)
			(void)printf("%s%s%s:%u -> port %u of session %s\n", is_ipv6 ? "[" : "",
			             c->address, is_ipv6 ? "]" : "", f->local, f->port, c->session);
		(void)json_array_append_new(list,
		                            json_pack("{s:s, s:i, s:i}", "address", c->address,
		                                      "local_port", f->local, "port", f->port));
	}
	if (c->options->common.json) {
		json_auto_t *answer =
			json_pack("{s:s, s:O}", "session_id", c->session, "forwards", list);

		message_print_json(answer);
	}
	(void)fflush(stdout); /* for those who wait for it */
}

static int open_command(struct port_command *c, const struct args *args, struct error *err)
{
	if (args->words_count - 1 > FORWARDS_MAX)
		return error_set(err, ERR_INVALID, 0, "at most %d ports", FORWARDS_MAX);
	for (size_t i = 1; i < args->words_count; i++) {
		if (parse_forward(args->words[i], &c->forwards[c->count], err) < 0)
			return -1;
		c->count++;
	}
	for (size_t i = 0; i < c->count; i++)
		if (listen_local(c, &c->forwards[i], err) < 0)
			return -1;
	c->client = daemon_open(&c->options->common.at);
	if (daemon_require(c->client, err) < 0)
		return -1;
	return fd_pipe(c->gone, 0) < 0 ? error_set(err, ERR_SYSTEM, errno, "make a pipe") : 0;
}

static int run_forwards(struct port_command *c, const struct args *args, struct error *err)
{
	struct port_options quiet = *c->options;
	cleanup_close int interrupt_fd = -1;
	json_auto_t *answer = NULL;
	int status;

	if (open_command(c, args, err) < 0)
		return -1;
	/* Before anything connects: is there such a session? */
	quiet.common.json = false;
	status = list_ports(&quiet, c->session, &answer, err);
	if (status != CLI_OK)
		return status;
	interrupt_fd = interrupt_open(err);
	if (interrupt_fd < 0)
		return -1;
	(void)signal(SIGCHLD, SIG_IGN); /* nothing waits for the processes */
	print_forwards(c);
	return accept_all(c, interrupt_fd, err);
}

static int run_port(const void *values, const struct args *args, struct error *err)
{
	const struct port_options *options = values;
	struct port_command c = {
		.options = options,
		.session = args->words_count ? args->words[0] : NULL,
		.address = options->address ? options->address : "127.0.0.1",
		.gone = {-1, -1},
	};
	int status;

	if (!c.session)
		return error_set(err, ERR_INVALID, 0, "expected a session id");
	if (args->words_count == 1)
		return print_ports(options, c.session, err);
	status = run_forwards(&c, args, err);
	command_done(&c);
	return status;
}

#define AT(member) offsetof(struct port_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"address", 'a', OPTION_TEXT, AT(address), "ADDRESS", "listen on this local address; default: 127.0.0.1"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(port, "port", "SESSION [PORT...]",
        "Forward local ports to programs that listen in a session, or list their ports", run_port,
        rows, struct port_options,
        .text = "PORT is PORT or PORT:LOCALPORT. Connections to LOCALPORT, by default PORT, reach "
                "PORT of the session's own loopback until Ctrl-C; LOCALPORT 0 chooses a free one. "
                "Without PORT: list ports on which programs listen.\n");
