/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/netns_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "engine/netns_cache.h"
#include "engine/netns_check.h"

/* Enough for a burst; each costs some hundred KiB of kernel memory. */
#define SPARE_COUNT 8
/* Kept after a burst for the next one. */
#define SPARE_MAX        32
#define TAKE_TIMEOUT_SEC 2

/* Requests to the helper, one byte each. */
enum {
	REQUEST_WANTED = 'w',  /* send a namespace; may carry a used one to check and reuse */
	REQUEST_DROPPED = 'd', /* forget its namespace, or all if it carries none */
};

static int open_own_netns(void)
{
	return fd_open("/proc/self/ns/net", O_RDONLY, 0);
}

/* Programs test servers over loopback; there is no other interface. */
static int loopback_up(void)
{
	cleanup_close int sock = fd_socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	if (sock < 0)
		return sock;
	return ioctl(sock, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

/*
 * Socket buffers are kernel memory. The box's cgroup counts them (v2 in memory.max, v1 in
 * memory.kmem.tcp, which includes UDP) but lets every connection exceed the limit a little, and
 * without a cgroup nothing counts them. So the buffers are small, which is enough over loopback.
 * The settings in net/core apply to the whole host and are left alone.
 */
static void limit_socket_buffers(void)
{
	/* Fails where /proc/sys is read-only. */
	(void)!file_write_at(AT_FDCWD, "/proc/sys/net/ipv4/tcp_rmem", "4096 65536 262144");
	(void)!file_write_at(AT_FDCWD, "/proc/sys/net/ipv4/tcp_wmem", "4096 16384 262144");
}

/* Moves this process into a new namespace. Return: its descriptor, or a negative errno. */
static int make_netns(void)
{
	int r = unshare(CLONE_NEWNET) < 0 ? -errno : loopback_up();

	if (r >= 0)
		limit_socket_buffers();
	return r < 0 ? r : open_own_netns();
}

int netns_pool_visit(int net)
{
	return setns(net, CLONE_NEWNET) < 0 ? -errno : 0;
}

struct maker {
	int sock;
	int home;
	bool away;        /* not in the namespace @home */
	struct buf fresh; /* traces of a new namespace; empty: unknown */
	struct buf used;  /* traces of the namespace being checked */
	struct netns_cache cache;
};

/* Enters @net if it is not in the cache. Return: its entry or NULL. */
static struct netns_cache_entry *find_or_add_entry(struct maker *maker, int net)
{
	struct netns_cache_entry *entry = netns_cache_find(&maker->cache, net);

	if (entry)
		return entry;
	maker->away = true;
	return netns_pool_visit(net) < 0 ? NULL : netns_cache_add(&maker->cache, net);
}

/* May move this process into @net. Return: whether another box may use it. */
static bool is_unused(struct maker *maker, int net)
{
	const struct buf *fresh = &maker->fresh, *used = &maker->used;
	struct netns_cache_entry *entry = find_or_add_entry(maker, net);

	if (entry && fresh->len > 0 && netns_check_read(&entry->traces, &maker->used) >= 0 &&
	    used->len == fresh->len && memcmp(used->data, fresh->data, fresh->len) == 0)
		return true;
	netns_cache_drop(entry);
	return false;
}

/* Moves this process into a new namespace; records the first one's traces. */
static int make_fresh(struct maker *maker)
{
	const struct netns_cache_entry *entry;
	int net;

	maker->away = true;
	net = make_netns();
	entry = net < 0 ? NULL : netns_cache_add(&maker->cache, net);
	/* If this fails, no namespace is reused. */
	if (entry && maker->fresh.len == 0)
		(void)!netns_check_read(&entry->traces, &maker->fresh);
	return net;
}

/* The helper must not be in a namespace that it gives to a box. */
static int return_home(struct maker *maker)
{
	int r = maker->away ? netns_pool_visit(maker->home) : 0;

	maker->away = maker->away && r < 0;
	return r;
}

static int serve_request(struct maker *maker)
{
	int fds[FD_PASS_MAX] = {-1};
	size_t count = 0;
	cleanup_close int net = -1;
	char byte;
	ssize_t n = fd_recv(maker->sock, &byte, sizeof(byte), fds, &count);
	int r;

	if (n <= 0 || count > 1)
		return -EPIPE;
	net = count == 1 ? fds[0] : -1;
	if (byte == REQUEST_DROPPED) {
		if (net >= 0)
			netns_cache_drop(netns_cache_find(&maker->cache, net));
		else
			netns_cache_drop_all(&maker->cache);
		return 0;
	}
	if (net < 0 || !is_unused(maker, net)) {
		(void)fd_close(net);
		net = make_fresh(maker);
	}
	r = return_home(maker);
	if (net < 0 || r < 0)
		return net < 0 ? net : r;
	return fd_send(maker->sock, &byte, sizeof(byte), &net, 1);
}

static int close_others(int sock, int home)
{
	int low = sock < home ? sock : home, high = sock < home ? home : sock;

	if (low <= STDERR_FILENO || high == low)
		return -EBADF;
	if ((low > STDERR_FILENO + 1 && close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0) < 0) ||
	    (high > low + 1 && close_range((unsigned)low + 1, (unsigned)high - 1, 0) < 0) ||
	    close_range((unsigned)high + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

/* Exits with the engine. Without the helper the engine continues. */
static void run_helper(int sock, int home) attr_noreturn;
static void run_helper(int sock, int home)
{
	const struct sched_param none = {0};
	struct maker maker = {
		.sock = sock,
		.home = home,
		.fresh = BUF_INIT(NETNS_CHECK_MAX),
		.used = BUF_INIT(NETNS_CHECK_MAX),
	};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	/* A request must not preempt the engine, which is making a box. Not SCHED_IDLE: the helper
	 * holds a lock of the whole kernel. */
	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)prctl(PR_SET_NAME, "millibox-nets");
	netns_cache_init(&maker.cache);
	/* The helper must not hold the daemon's socket or the instance's locks. */
	if (close_others(sock, home) < 0)
		_exit(1);
	while (serve_request(&maker) >= 0)
		;
	_exit(0);
}

/* @net: -1: none. */
static void send_request(struct netns_pool *pool, char what, int net)
{
	if (fd_send(pool->sock, &what, sizeof(what), &net, net >= 0 ? 1 : 0) < 0)
		pool->sock = fd_close(pool->sock);
}

/*
 * Tells the helper to forget @net, or all if -1. Does not wait: thousands of boxes may end at once
 * while the helper waits for the kernel. Return: whether it was sent.
 */
static bool send_dropped(struct netns_pool *pool, int net)
{
	struct pollfd out = {.fd = pool->sock, .events = POLLOUT};

	if (poll(&out, 1, 0) != 1)
		return false;
	send_request(pool, REQUEST_DROPPED, net);
	return true;
}

void netns_pool_refill(struct netns_pool *pool)
{
	if (pool->drop_pending)
		pool->drop_pending = !send_dropped(pool, -1);
	for (; pool->owed > 0 && pool->sock >= 0; pool->owed--)
		send_request(pool, REQUEST_WANTED, -1);
}

void netns_pool_drop(struct netns_pool *pool, int net)
{
	cleanup_close int dropped = net;

	if (dropped >= 0 && pool->sock >= 0)
		pool->drop_pending = !send_dropped(pool, dropped) || pool->drop_pending;
}

void netns_pool_give(struct netns_pool *pool, int net)
{
	cleanup_close int given = net;

	if (given < 0 || pool->sock < 0)
		return;
	if (pool->owed <= SPARE_COUNT - SPARE_MAX) {
		netns_pool_drop(pool, TAKE_FD(given));
		return;
	}
	send_request(pool, REQUEST_WANTED, given);
	pool->owed--;
}

bool netns_pool_is_low(const struct netns_pool *pool)
{
	return pool->owed >= SPARE_COUNT / 2;
}

static int start_helper(struct netns_pool *pool)
{
	const struct timeval limit = {.tv_sec = TAKE_TIMEOUT_SEC};
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return r;
	pool->helper = fork();
	if (pool->helper == 0)
		run_helper(pair[1], pool->home);
	r = pool->helper < 0 ? -errno : 0;
	(void)fd_close(pair[1]);
	pool->sock = pair[0];
	if (r >= 0 && setsockopt(pool->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
		r = -errno;
	pool->owed = SPARE_COUNT;
	netns_pool_refill(pool);
	return r;
}

struct netns_pool netns_pool_empty(void)
{
	return (struct netns_pool){.home = -1, .sock = -1, .bridge = -1};
}

int netns_pool_open(struct netns_pool *pool, int bridge)
{
	*pool = netns_pool_empty();
	pool->bridge = bridge;
	/* The engine needs no network. Without privilege on the host it could not return to the
	 * host's namespace, which belongs to another user namespace. */
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	pool->home = open_own_netns();
	return pool->home < 0 ? pool->home : start_helper(pool);
}

void netns_pool_close(struct netns_pool *pool)
{
	pool->sock = fd_close(pool->sock);
	pool->home = fd_close(pool->home);
	pool->bridge = fd_close(pool->bridge);
	if (pool->helper > 0)
		(void)waitpid(pool->helper, NULL, 0);
	pool->helper = 0;
}

void netns_pool_return(const struct netns_pool *pool)
{
	if (setns(pool->home, CLONE_NEWNET) < 0)
		abort();
}

static int receive_netns(struct netns_pool *pool)
{
	int fds[FD_PASS_MAX] = {-1};
	size_t count = 0;
	char byte;
	ssize_t n = fd_recv(pool->sock, &byte, sizeof(byte), fds, &count);

	if (n < 0)
		return (int)n;
	if (n == 0 || count != 1)
		return -EPIPE;
	pool->owed++;
	return fds[0];
}

int netns_pool_take(struct netns_pool *pool)
{
	int net = pool->sock < 0 ? -EPIPE : receive_netns(pool);

	if (net >= 0)
		return net;
	/* Without the helper, make it here. */
	pool->sock = fd_close(pool->sock);
	net = make_netns();
	netns_pool_return(pool);
	return net;
}
