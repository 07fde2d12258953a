/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tls_guard.h"

#include "base/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUARD_LINK   3
#define GUARD_SILENT "request the files of tls.cert and tls.key; a restart will read them"

/* Why files are missing; 0: the descriptor is attached. */
struct answer {
	int sys[TLS_FILES_COUNT];
};

static int answer_reload(const struct config *config)
{
	struct answer a = {0};
	int fds[TLS_FILES_COUNT], sent[TLS_FILES_COUNT];
	size_t count = 0;
	int r;

	tls_files_open(config, fds);
	for (size_t i = 0; i < TLS_FILES_COUNT; i++) {
		if (fds[i] >= 0)
			sent[count++] = fds[i];
		else
			a.sys[i] = -fds[i];
	}
	r = fd_send(GUARD_LINK, &a, sizeof(a), sent, count);
	for (size_t i = 0; i < count; i++)
		(void)fd_close(sent[i]);
	return r;
}

static void guard_files(const void *ctx, int link)
{
	/* Read anyone's files, else only our own. */
	static const uint32_t caps[] = {1U << CAP_DAC_READ_SEARCH, 1U << CAP_DAC_OVERRIDE, 0};
	ssize_t n;
	char byte;

	if (guard_drop("milliboxd-tls", caps, ARRAY_SIZE(caps)) < 0 ||
	    (link != GUARD_LINK && dup3(link, GUARD_LINK, O_CLOEXEC) < 0) ||
	    close_range(GUARD_LINK + 1, ~0U, 0) < 0 || close_range(0, GUARD_LINK - 1, 0) < 0)
		_exit(1);
	do
		n = read(GUARD_LINK, &byte, 1);
	while ((n > 0 && answer_reload(ctx) == 0) || (n < 0 && errno == EINTR));
	_exit(0);
}

int tls_guard_start(struct guard *g, const struct config *config, struct error *err)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	*g = (struct guard){.link = -1};
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socketpair");
	return guard_fork(g, pair, guard_files, config, err);
}

/* In file order, skipping missing ones. */
static int sort_out(const struct answer *a, const int *fds, size_t count,
                    int ret_fds[TLS_FILES_COUNT])
{
	size_t used = 0;

	for (size_t i = 0; i < TLS_FILES_COUNT; i++) {
		if (a->sys[i] == 0 && used == count)
			return -EPROTO;
		ret_fds[i] = a->sys[i] ? -a->sys[i] : fds[used++];
	}
	return used == count ? 0 : -EPROTO;
}

int tls_guard_ask(const struct guard *g, struct error *err)
{
	int r = fd_send(g->link, "x", 1, NULL, 0);

	return r < 0 ? error_set(err, ERR_SYSTEM, -r, GUARD_SILENT) : 0;
}

void tls_guard_give_up(const struct guard *g, struct error *err)
{
	/* A late answer would be taken for the next one. */
	(void)shutdown(g->link, SHUT_RDWR);
	(void)error_set(err, ERR_SYSTEM, ETIMEDOUT, GUARD_SILENT);
}

int tls_guard_take(const struct guard *g, int ret_fds[TLS_FILES_COUNT], struct error *err)
{
	int fds[FD_PASS_MAX];
	size_t count = 0;
	struct answer a = {0};
	ssize_t n = fd_recv(g->link, &a, sizeof(a), fds, &count);

	if (n == -EAGAIN || n == -EINTR)
		return 1;
	if (n == sizeof(a) && sort_out(&a, fds, count, ret_fds) == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
	(void)shutdown(g->link, SHUT_RDWR);
	return error_set(err, ERR_SYSTEM, n < 0 ? (int)-n : EPROTO, GUARD_SILENT);
}
