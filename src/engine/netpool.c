/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/netpool.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

static int open_own(void)
{
	return fd_open("/proc/self/ns/net", O_RDONLY, 0);
}

int netpool_open(struct netpool *pool)
{
	*pool = (struct netpool){.home = -1};
	/* The engine needs no network. And without privilege on the host nobody gets back into the
	 * host's namespace, which belongs to another user namespace. */
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	pool->home = open_own();
	return pool->home < 0 ? pool->home : 0;
}

void netpool_close(struct netpool *pool)
{
	while (pool->count > 0)
		(void)fd_close(pool->spare[--pool->count]);
	pool->home = fd_close(pool->home);
}

bool netpool_is_full(const struct netpool *pool)
{
	return pool->count == NETPOOL_SIZE;
}

/* Programs test servers against themselves; there is no other interface to bring up. */
static int loopback_up(void)
{
	cleanup_close int sock = fd_socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	if (sock < 0)
		return sock;
	return ioctl(sock, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

int netpool_visit(int net)
{
	return setns(net, CLONE_NEWNET) < 0 ? -errno : 0;
}

void netpool_return(const struct netpool *pool)
{
	if (setns(pool->home, CLONE_NEWNET) < 0)
		abort();
}

int netpool_fill(struct netpool *pool)
{
	int r, fd = -1;

	assert(!netpool_is_full(pool));
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	r = loopback_up();
	if (r >= 0)
		r = fd = open_own();
	netpool_return(pool);
	if (r < 0)
		return r;
	pool->spare[pool->count++] = fd;
	return 0;
}

int netpool_take(struct netpool *pool)
{
	int r = pool->count > 0 ? 0 : netpool_fill(pool);

	return r < 0 ? r : pool->spare[--pool->count];
}
