/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/denials.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

void denials_open(struct denials *d, int fd)
{
	*d = (struct denials){.fd = fd};
}

void denials_close(struct denials *d)
{
	d->fd = fd_close(d->fd);
}

void denials_count(struct denials *d, uint32_t number)
{
	for (unsigned i = 0; i < d->kinds; i++) {
		if (d->counts[i].number == number) {
			d->counts[i].count++;
			return;
		}
	}
	if (d->kinds < DENIALS_KINDS_MAX)
		d->counts[d->kinds++] = (struct denial_count){number, 1};
}

/* Receiving blocks with nothing queued, and fails if the caller has died. */
static bool has_waiting(struct denials *d)
{
	struct pollfd p = {.fd = d->fd, .events = POLLIN};

	if (d->fd < 0 || poll(&p, 1, 0) != 1)
		return false;
	if (p.revents & POLLIN)
		return true;
	denials_close(d); /* POLLHUP: no process has the filter */
	return false;
}

/* The C libraries disagree about the type of a request. */
static int notify_ioctl(int fd, unsigned request, void *arg)
{
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static int answer_one(struct denials *d)
{
	struct seccomp_notif n = {0}; /* the kernel requires zeros */
	struct seccomp_notif_resp resp = {.error = -EPERM};

	if (notify_ioctl(d->fd, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	if (n.data.nr == SYS_exit_group) {
		d->leaver = (int)n.pid;
		d->leave_code = (int)(n.data.args[0] & 0xff); /* as a wait status */
	} else {
		denials_count(d, (uint32_t)n.data.nr);
	}
	resp.id = n.id;
	/* ENOENT: the caller was killed. */
	(void)notify_ioctl(d->fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	return 0;
}

void denials_pump(struct denials *d)
{
	for (int i = 0; i < DENIALS_BATCH && has_waiting(d); i++) {
		/* Without the listener the calls fail with ENOSYS. */
		if (answer_one(d) < 0)
			denials_close(d);
	}
}

int denials_send(const struct denials *d, struct channel *ch, uint32_t id)
{
	for (unsigned i = 0; i < d->kinds; i++) {
		struct msg_denial msg = {
			.kind = WIRE_DENIAL_SYSCALL,
			.number = d->counts[i].number,
			.count = d->counts[i].count,
		};
		int r = msg_denial_encode(&ch->out, id, &msg);
		if (r < 0)
			return r;
	}
	return 0;
}
