/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/discard.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

void discard_init(struct discard *s)
{
	for (size_t i = 0; i < DISCARD_MAX; i++)
		s->fds[i] = -1;
}

static void drop_entry(struct discard *s, size_t i)
{
	(void)fd_close(s->fds[i]);
	memmove(&s->fds[i], &s->fds[i + 1], (DISCARD_MAX - 1 - i) * sizeof(s->fds[0]));
	s->fds[DISCARD_MAX - 1] = -1;
}

void discard_add(struct discard *s, int fd)
{
	size_t i = 0;

	if (fd < 0)
		return;
	if (s->fds[DISCARD_MAX - 1] >= 0)
		drop_entry(s, 0);
	while (s->fds[i] >= 0)
		i++;
	s->fds[i] = fd;
}

void discard_watch(const struct discard *s, struct pollfd *fds)
{
	for (size_t i = 0; i < DISCARD_MAX; i++)
		fds[i] = (struct pollfd){.fd = s->fds[i], .events = POLLIN};
}

void discard_pump(struct discard *s, const struct pollfd *fds, char *scratch, size_t size)
{
	/* Backwards: removing one moves only handled entries. */
	for (size_t i = DISCARD_MAX; i-- > 0;) {
		ssize_t n = 0;
		if (!fds[i].revents || fds[i].fd != s->fds[i])
			continue;
		n = read(s->fds[i], scratch, size);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			drop_entry(s, i);
	}
}
