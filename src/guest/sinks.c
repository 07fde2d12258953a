/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/sinks.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

void sinks_init(struct sinks *s)
{
	for (size_t i = 0; i < SINKS_MAX; i++)
		s->fds[i] = -1;
}

static void drop(struct sinks *s, size_t i)
{
	(void)fd_close(s->fds[i]);
	memmove(&s->fds[i], &s->fds[i + 1], (SINKS_MAX - 1 - i) * sizeof(s->fds[0]));
	s->fds[SINKS_MAX - 1] = -1;
}

void sinks_add(struct sinks *s, int fd)
{
	size_t i = 0;

	if (fd < 0)
		return;
	if (s->fds[SINKS_MAX - 1] >= 0)
		drop(s, 0);
	while (s->fds[i] >= 0)
		i++;
	s->fds[i] = fd;
}

void sinks_watch(const struct sinks *s, struct pollfd *fds)
{
	for (size_t i = 0; i < SINKS_MAX; i++)
		fds[i] = (struct pollfd){.fd = s->fds[i], .events = POLLIN};
}

void sinks_pump(struct sinks *s, const struct pollfd *fds, char *scratch, size_t size)
{
	/* From the end: what is dropped moves only what has had its turn. */
	for (size_t i = SINKS_MAX; i-- > 0;) {
		ssize_t n = 0;
		if (!fds[i].revents || fds[i].fd != s->fds[i])
			continue;
		n = read(s->fds[i], scratch, size);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			drop(s, i);
	}
}
