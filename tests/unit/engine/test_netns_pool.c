/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/in6.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "engine/netns_cache.h"
#include "engine/netns_pool.h"

/* More than the pool keeps. */
#define TAKEN 12
/* More than the pool keeps after a burst. */
#define STOCK_MAX 40
/* Of what a busy host may prevent. */
#define TRIES 50
/* More than the helper's cache holds. */
#define MANY (NETNS_CACHE_MAX + 24)

enum result {
	RESULT_FINE,
	RESULT_WRONG,
	RESULT_NOT_HERE, /* network namespaces are not available */
};

/* The pool works without its helper after a wait of seconds, which a busy host may cause. The tests
 * are about the helper, so they wait for it. */
static int wait_for_helper(const struct netns_pool *pool)
{
	const struct timeval no_limit = {0};

	return setsockopt(pool->sock, SOL_SOCKET, SO_RCVTIMEO, &no_limit, sizeof(no_limit));
}

/* Runs @fn in a child, because it cannot return to the test's network. */
static void run_apart(enum result (*fn)(struct netns_pool *pool))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct netns_pool pool;
		enum result result = RESULT_NOT_HERE;

		if ((geteuid() == 0 || unshare(CLONE_NEWUSER) == 0) &&
		    netns_pool_open(&pool, -1) == 0) {
			result = wait_for_helper(&pool) == 0 ? fn(&pool) : RESULT_WRONG;
			netns_pool_close(&pool);
		}
		_exit(result);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == RESULT_NOT_HERE)
		skip();
	assert_int_equal(WEXITSTATUS(status), RESULT_FINE);
}

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static ino_t own_inode(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

static enum result take_many(struct netns_pool *pool)
{
	ino_t seen[TAKEN];
	int nets[TAKEN];

	for (int i = 0; i < TAKEN; i++) {
		nets[i] = netns_pool_take(pool);
		seen[i] = inode_of(nets[i]);
		if (seen[i] == 0 || seen[i] == own_inode())
			return RESULT_WRONG;
		for (int j = 0; j < i; j++)
			if (seen[i] == seen[j])
				return RESULT_WRONG;
		if (netns_pool_is_low(pool))
			netns_pool_refill(pool);
	}
	return RESULT_FINE;
}

static void every_box_gets_its_own_network(void **state)
{
	(void)state;
	run_apart(take_many);
}

static enum result take_alone(struct netns_pool *pool)
{
	if (kill(pool->helper, SIGKILL) < 0)
		return RESULT_WRONG;
	return take_many(pool);
}

static void without_its_helper_the_pool_makes_namespaces(void **state)
{
	(void)state;
	run_apart(take_alone);
}

static enum result go_and_return(struct netns_pool *pool)
{
	ino_t home = own_inode();
	int net = netns_pool_take(pool);

	if (netns_pool_visit(net) < 0 || own_inode() != inode_of(net))
		return RESULT_WRONG;
	netns_pool_return(pool);
	return own_inode() == home ? RESULT_FINE : RESULT_WRONG;
}

static void a_visit_ends_at_home(void **state)
{
	(void)state;
	run_apart(go_and_return);
}

/* Ways to use a network. Return: a descriptor that keeps the use alive, 0 or -1. */
static int do_nothing(void)
{
	return 0;
}

static int use_and_close(void)
{
	cleanup_close int sock = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	cleanup_close int udp = fd_socket(AF_INET, SOCK_DGRAM, 0);

	return sock < 0 || udp < 0 ? -1 : 0;
}

static struct sockaddr_in address(in_addr_t ip)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(9),
		.sin_addr.s_addr = htonl(ip),
	};
}

static int send_packet(void)
{
	cleanup_close int sock = fd_socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = address(INADDR_LOOPBACK);

	return sendto(sock, "", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1 ? 0 : -1;
}

static int be_refused(void)
{
	cleanup_close int sock = fd_socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = address(0xc0000201); /* 192.0.2.1: unreachable */

	return connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0 ? 0 : -1;
}

static int be_refused_near(void)
{
	cleanup_close int sock = fd_socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = address(INADDR_LOOPBACK); /* no listener */

	return connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0 ? 0 : -1;
}

static int send_packet6(void)
{
	cleanup_close int sock = fd_socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(9),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};

	if (sock < 0)
		return sock;
	return sendto(sock, "", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1 ? 0 : -1;
}

static int leave_udp(void)
{
	return fd_socket(AF_INET, SOCK_DGRAM, 0);
}

static int leave_listener(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0left"};
	int sock = fd_socket(AF_UNIX, SOCK_STREAM, 0);

	if (bind(sock, (struct sockaddr *)&name, sizeof(name)) < 0 || listen(sock, 1) < 0)
		return -1;
	return sock;
}

static int leave_flow_label(void)
{
	cleanup_close int sock = fd_socket(AF_INET6, SOCK_DGRAM, 0);
	struct in6_flowlabel_req req = {
		.flr_dst = IN6ADDR_LOOPBACK_INIT,
		.flr_label = htonl(0x12345),
		.flr_action = IPV6_FL_A_GET,
		.flr_share = IPV6_FL_S_ANY,
		.flr_flags = IPV6_FL_F_CREATE,
		.flr_linger = 60,
	};

	if (sock < 0)
		return sock;
	if (setsockopt(sock, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &req, sizeof(req)) < 0)
		return -1;
	return 0;
}

static const struct {
	const char *what;
	int (*act)(void);
	bool again; /* whether another box may get it */
} USES[] = {
	{"nothing was done", do_nothing, true},
	{"sockets were made and closed", use_and_close, true},
	{"a packet was sent", send_packet, false},
	{"a packet was sent by IPv6", send_packet6, false},
	{"there was no way", be_refused, false},
	{"a connection was refused", be_refused_near, false},
	{"a socket is left", leave_udp, false},
	{"a listener is left", leave_listener, false},
	{"a flow label lingers", leave_flow_label, false},
};

/* Gives @net back and takes more than the pool keeps. Return: whether @net is among them. */
static bool comes_back(struct netns_pool *pool, int net)
{
	/* The kernel gives the inode number of one that is gone to the next. */
	cleanup_close int held = fd_dup(net);
	ino_t given = inode_of(held);
	bool found = false;

	netns_pool_give(pool, net);
	for (int i = 0; i < TAKEN; i++) {
		int other = netns_pool_take(pool);

		found = found || inode_of(other) == given;
		netns_pool_refill(pool);
	}
	return found;
}

/* Gives @net back and takes until it returns. Return: its descriptor, or -1. */
static int give_and_take(struct netns_pool *pool, int net)
{
	cleanup_close int held = fd_dup(net);
	ino_t given = inode_of(held);

	netns_pool_give(pool, net);
	for (int i = 0; i < TAKEN; i++) {
		int other = netns_pool_take(pool);

		if (inode_of(other) == given)
			return other;
		netns_pool_give(pool, other);
	}
	/* Otherwise the stock would grow, and the next one come after more than that many. */
	netns_pool_drop(pool, netns_pool_take(pool));
	return -1;
}

/* Applies @use in @net. Return: RESULT_FINE if the helper then decides correctly. RESULT_NOT_HERE:
 * an unused one did not come back; a helper that lags behind gets fewer of them. */
static enum result use_one(struct netns_pool *pool, int net, size_t use)
{
	bool again;
	int kept;

	if (netns_pool_visit(net) < 0)
		return RESULT_WRONG;
	kept = USES[use].act();
	netns_pool_return(pool);
	if (kept == -EAFNOSUPPORT) /* no IPv6, no flow labels */
		return RESULT_FINE;
	if (kept < 0) {
		print_error("cannot be tried: %s\n", USES[use].what);
		return RESULT_WRONG;
	}
	again = comes_back(pool, net);
	if (again && !USES[use].again) {
		print_error("%s: given again\n", USES[use].what);
		return RESULT_WRONG;
	}
	return again == USES[use].again ? RESULT_FINE : RESULT_NOT_HERE;
}

/* @take: a namespace, or -1 as with RESULT_NOT_HERE. */
static enum result use_each(struct netns_pool *pool, int (*take)(struct netns_pool *pool))
{
	for (size_t i = 0; i < ARRAY_SIZE(USES); i++) {
		enum result result = RESULT_NOT_HERE;

		for (int tries = 0; tries < TRIES && result == RESULT_NOT_HERE; tries++) {
			int net = take(pool);

			result = net < 0 ? RESULT_NOT_HERE : use_one(pool, net, i);
		}
		if (result != RESULT_FINE) {
			print_error("%s: never given again\n", USES[i].what);
			return RESULT_WRONG;
		}
	}
	return RESULT_FINE;
}

static int take_and_refill(struct netns_pool *pool)
{
	int net = netns_pool_take(pool);

	netns_pool_refill(pool);
	return net;
}

static enum result use_and_give(struct netns_pool *pool)
{
	return use_each(pool, take_and_refill);
}

static void only_an_unused_one_serves_another_box(void **state)
{
	(void)state;
	run_apart(use_and_give);
}

static int take_one_of_three_boxes(struct netns_pool *pool)
{
	int net = netns_pool_take(pool);

	for (int box = 0; box < 3 && net >= 0; box++)
		net = give_and_take(pool, net);
	return net;
}

static enum result use_later(struct netns_pool *pool)
{
	return use_each(pool, take_one_of_three_boxes);
}

static void use_is_seen_also_by_a_later_box(void **state)
{
	(void)state;
	run_apart(use_later);
}

/* Open descriptors of the helper: all, and those of network namespaces. */
static int count_files(const struct netns_pool *pool, int *ret_nets)
{
	char path[32], link[64];
	const struct dirent *e;
	int count = 0;
	DIR *dir;

	assert_int_equal(str_format(path, sizeof(path), "/proc/%d/fd", (int)pool->helper), 0);
	dir = opendir(path);
	assert_non_null(dir);
	*ret_nets = 0;
	while ((e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link));

		count += n > 0;
		*ret_nets += n > 5 && memcmp(link, "net:[", 5) == 0;
	}
	(void)closedir(dir);
	return count;
}

/*
 * There are never STOCK_MAX answers queued: after the first half the helper has handled all earlier
 * requests and can accept those that could not be sent; after the second it has handled them too.
 */
static void let_settle(struct netns_pool *pool)
{
	for (int i = 0; i < STOCK_MAX * 2; i++) {
		netns_pool_give(pool, netns_pool_take(pool));
		netns_pool_refill(pool);
	}
}

/* Besides the cache it has its home namespace, and perhaps one that it is making. */
static bool is_bounded(const struct netns_pool *pool, int max)
{
	int nets, files = count_files(pool, &nets);

	if (nets <= max + 2 && files <= (max + 2) * (NETNS_CHECK_FILES + 1) + 4)
		return true;
	print_error("%d namespaces, %d files\n", nets, files);
	return false;
}

/* @stock: more than the pool keeps. They come in turn; none is made meanwhile. Return: how many
 * boxes the first of them served. */
static int count_lives(struct netns_pool *pool, int stock)
{
	ino_t first = 0;
	int lives = 0;

	for (int i = 0; i < stock * 50; i++) {
		int net = netns_pool_take(pool);

		if (i == 0)
			first = inode_of(net);
		lives += inode_of(net) == first;
		netns_pool_give(pool, net);
	}
	return lives;
}

static enum result serve_boxes(struct netns_pool *pool, int stock)
{
	int lives = 0;

	for (int tries = 0; tries < TRIES && lives < 50; tries++)
		lives = count_lives(pool, stock);
	return lives >= 50 && is_bounded(pool, stock) ? RESULT_FINE : RESULT_WRONG;
}

static enum result serve_many_boxes(struct netns_pool *pool)
{
	return serve_boxes(pool, TAKEN);
}

static void one_serves_box_after_box(void **state)
{
	(void)state;
	run_apart(serve_many_boxes);
}

static void take_more(struct netns_pool *pool, int *nets, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		nets[i] = netns_pool_take(pool);
		netns_pool_refill(pool);
	}
}

static enum result forget_some(struct netns_pool *pool)
{
	int nets[MANY], net = -1;

	take_more(pool, nets, MANY);
	if (!is_bounded(pool, NETNS_CACHE_MAX))
		return RESULT_WRONG;
	/* The first ones were evicted. */
	for (size_t i = 0; i < ARRAY_SIZE(USES); i++)
		if (use_one(pool, nets[i], i) == RESULT_WRONG)
			return RESULT_WRONG;
	for (size_t i = TAKEN; i < MANY && net < 0; i++) {
		net = nets[i];
		for (int box = 0; box < 3 && net >= 0; box++)
			net = give_and_take(pool, net);
	}
	return net >= 0 && is_bounded(pool, NETNS_CACHE_MAX) ? RESULT_FINE : RESULT_WRONG;
}

static void one_that_was_forgotten_is_judged_as_well(void **state)
{
	(void)state;
	run_apart(forget_some);
}

static enum result lose_many(struct netns_pool *pool)
{
	int nets[MANY];

	for (int round = 0; round < 3; round++) {
		take_more(pool, nets, MANY);
		for (size_t i = 0; i < MANY; i++)
			(void)fd_close(nets[i]);
	}
	let_settle(pool);
	return is_bounded(pool, NETNS_CACHE_MAX) ? RESULT_FINE : RESULT_WRONG;
}

static void those_that_never_come_back_are_let_go(void **state)
{
	(void)state;
	run_apart(lose_many);
}

static void give_back(struct netns_pool *pool, const int *nets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		netns_pool_give(pool, nets[i]);
}

static enum result give_many(struct netns_pool *pool)
{
	int nets[NETNS_CACHE_MAX];

	take_more(pool, nets, NETNS_CACHE_MAX);
	give_back(pool, nets, NETNS_CACHE_MAX);
	let_settle(pool);
	return is_bounded(pool, STOCK_MAX) ? RESULT_FINE : RESULT_WRONG;
}

static enum result give_more_than_is_told(struct netns_pool *pool)
{
	int nets[MANY * 2];
	bool drop_pending;

	take_more(pool, nets, ARRAY_SIZE(nets));
	if (kill(pool->helper, SIGSTOP) < 0)
		return RESULT_WRONG;
	give_back(pool, nets, ARRAY_SIZE(nets));
	drop_pending = pool->drop_pending;
	if (kill(pool->helper, SIGCONT) < 0 || !drop_pending)
		return RESULT_WRONG;
	let_settle(pool);
	if (pool->drop_pending || !is_bounded(pool, STOCK_MAX))
		return RESULT_WRONG;
	return serve_boxes(pool, STOCK_MAX);
}

static void surplus_namespaces_are_dropped(void **state)
{
	(void)state;
	run_apart(give_many);
}

static void a_busy_helper_does_not_hold_up_the_engine(void **state)
{
	(void)state;
	run_apart(give_more_than_is_told);
}

static enum result run_with_few_files(struct netns_pool *pool)
{
	const struct rlimit few = {.rlim_cur = 128, .rlim_max = 128};

	/* The helper inherits its limit from its parent. */
	netns_pool_close(pool);
	if (setrlimit(RLIMIT_NOFILE, &few) < 0 || netns_pool_open(pool, -1) < 0)
		return RESULT_WRONG;
	for (int i = 0; i < MANY; i++) {
		(void)fd_close(netns_pool_take(pool));
		netns_pool_refill(pool);
	}
	/* The helper is still alive and works. */
	return pool->sock >= 0 && serve_many_boxes(pool) == RESULT_FINE ? RESULT_FINE
	                                                                : RESULT_WRONG;
}

static void the_helper_copes_with_few_descriptors(void **state)
{
	(void)state;
	run_apart(run_with_few_files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_box_gets_its_own_network),
		cmocka_unit_test(without_its_helper_the_pool_makes_namespaces),
		cmocka_unit_test(a_visit_ends_at_home),
		cmocka_unit_test(only_an_unused_one_serves_another_box),
		cmocka_unit_test(use_is_seen_also_by_a_later_box),
		cmocka_unit_test(one_serves_box_after_box),
		cmocka_unit_test(one_that_was_forgotten_is_judged_as_well),
		cmocka_unit_test(those_that_never_come_back_are_let_go),
		cmocka_unit_test(surplus_namespaces_are_dropped),
		cmocka_unit_test(a_busy_helper_does_not_hold_up_the_engine),
		cmocka_unit_test(the_helper_copes_with_few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
