/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/helper.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/config/config.h"
#include "daemon/gateway_setup.h"
#include "daemon/own_process.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET_FD        3
#define START_TIMEOUT_MS (30 * 1000)
#define MEMORY_TEXT_LEN  24 /* a number of bytes */

/* In the child: inherits only the socket, and stderr for its log. */
attr_noreturn static void become(int exe, const char *const *argv, int sock)
{
	static char *const no_env[] = {NULL};
	int null = fd_open("/dev/null", O_RDWR, 0);
	static const int deaf_to[] = {SIGTERM, SIGINT, SIGHUP};

	/* Signals to the group are for the daemon: a helper ends with it. */
	for (size_t i = 0; i < ARRAY_SIZE(deaf_to); i++)
		(void)signal(deaf_to[i], SIG_IGN);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(127);
	if (sock == SOCKET_FD ? fcntl(sock, F_SETFD, 0) < 0 : dup2(sock, SOCKET_FD) < 0)
		_exit(127);
	own_process_reset_priority();
	/* At exec: the program's own descriptor is among them. */
	if (close_range(SOCKET_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(127);
	(void)execveat(exe, "", (char *const *)(uintptr_t)argv, no_env, AT_EMPTY_PATH);
	_exit(127);
}

static int find_program(struct helper *h, const char *engine_path, const char *program,
                        struct error *err)
{
	cleanup_free char *copy = xstrdup(engine_path);
	cleanup_free char *path = xasprintf("%s/%s", dirname(copy), program);

	*h = (struct helper){.exe = fd_open(path, O_PATH, 0), .sock = -1};
	if (h->exe < 0)
		return error_set(err, ERR_CONFIG, -h->exe, "%s", path);
	if (access(path, X_OK) < 0)
		return error_set(err, ERR_CONFIG, errno, "%s", path);
	return 0;
}

static int start_program(struct helper *h, const char *const *argv, struct error *err)
{
	int pair[2];
	int r;

	r = fd_socketpair(SOCK_SEQPACKET, pair);
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socketpair");
	h->pid = fork();
	if (h->pid == 0)
		become(h->exe, argv, pair[1]);
	r = errno;
	h->exe = fd_close(h->exe);
	(void)fd_close(pair[1]);
	h->sock = pair[0];
	if (h->pid > 0)
		return 0;
	h->sock = fd_close(h->sock);
	h->pid = 0;
	return error_set(err, ERR_SYSTEM, r, "fork");
}

/* Before its first order: it has no child yet. */
static int limit_program(const struct helper *h, struct helper_group *group, struct error *err)
{
	int r = helper_group_join(group, h->pid);

	helper_group_close(group);
	return r < 0 ? error_set(err, ERR_SYSTEM, -r, "cgroup of the importer") : 0;
}

int helpers_find(struct helpers *h, const struct config *config, struct error *err)
{
	if (find_program(&h->import, config->engine_path, "millibox-import", err) < 0)
		return -1;
	if (find_program(&h->egress, config->engine_path, "millibox-egress", err) < 0)
		return -1;
	return config->servers && config->servers[0]
	               ? find_program(&h->gateway, config->engine_path, "millibox-gateway", err)
	               : 0;
}

/* Waits until millibox-import accepts requests. */
static void check_importer(const struct helpers *h)
{
	struct pollfd ready = {.fd = h->import.sock, .events = POLLIN};
	char byte = 0;
	int r;

	do
		r = poll(&ready, 1, START_TIMEOUT_MS);
	while (r < 0 && errno == EINTR);
	/* Its only message. */
	if (r <= 0 || fd_recv(h->import.sock, &byte, sizeof(byte), NULL, NULL) != 1)
		log_warn("millibox-import ended when it was started: images cannot be imported");
}

static int start_gateway(struct helper *h, const struct config *config,
                         const struct secrets *secrets, struct error *err)
{
	char memory[MEMORY_TEXT_LEN];
	const char *const argv[] = {"millibox-gateway",
	                            "--memory",
	                            memory,
	                            "--log-level",
	                            log_level_name(config->log_level),
	                            "--log-format",
	                            log_format_name(config->log_format),
	                            NULL};
	size_t step = 0;
	int r;

	(void)snprintf(memory, sizeof(memory), "%" PRIu64, config->gateway_memory_bytes);
	r = start_program(h, argv, err);

	if (r < 0)
		return r;
	r = gateway_setup_send(h->sock, config, secrets, &step);
	return r < 0 ? error_set(err, ERR_SYSTEM, -r, "send the MCP servers to millibox-gateway")
	             : 0;
}

int helpers_start(struct helpers *h, const struct config *config, const char *roots,
                  struct helper_group *group, const struct secrets *secrets, struct error *err)
{
	const char *const import[] = {"millibox-import", "--roots", roots, NULL};
	char memory[MEMORY_TEXT_LEN];
	const char *const egress[] = {"millibox-egress",
	                              "--log-level",
	                              log_level_name(config->log_level),
	                              "--log-format",
	                              log_format_name(config->log_format),
	                              "--ca-file",
	                              config->egress_ca_file,
	                              "--memory",
	                              memory,
	                              config->egress_resolver[0] ? "--resolver" : NULL,
	                              config->egress_resolver,
	                              NULL};

	(void)snprintf(memory, sizeof(memory), "%" PRIu64, config->egress_memory_bytes);
	if (start_program(&h->import, import, err) < 0 || limit_program(&h->import, group, err) < 0)
		return -1;
	if (start_program(&h->egress, egress, err) < 0)
		return -1;
	if (h->gateway.exe >= 0 && start_gateway(&h->gateway, config, secrets, err) < 0)
		return -1;
	check_importer(h);
	return 0;
}

static void end_program(struct helper *h)
{
	h->exe = fd_close(h->exe);
	if (h->pid <= 0)
		return;
	h->sock = fd_close(h->sock);
	while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		;
	h->pid = 0;
}

void helpers_end(struct helpers *h)
{
	end_program(&h->import);
	end_program(&h->egress);
	end_program(&h->gateway);
}
