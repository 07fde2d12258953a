/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/in6.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fd.h"
#include "engine/netpool.h"

/* More than are kept in stock. */
#define TAKEN 12

enum result {
	RESULT_FINE,
	RESULT_WRONG,
	RESULT_NOT_HERE, /* no network namespaces for us on this host */
};

/* Runs @fn in a child, because it leaves the network of the test for ever. */
static void run_apart(enum result (*fn)(struct netpool *pool))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct netpool pool;
		enum result result = RESULT_NOT_HERE;

		if ((geteuid() == 0 || unshare(CLONE_NEWUSER) == 0) && netpool_open(&pool) == 0) {
			result = fn(&pool);
			netpool_close(&pool);
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

static enum result take_many(struct netpool *pool)
{
	ino_t seen[TAKEN];
	int nets[TAKEN];

	for (int i = 0; i < TAKEN; i++) {
		nets[i] = netpool_take(pool);
		seen[i] = inode_of(nets[i]);
		if (seen[i] == 0 || seen[i] == own_inode())
			return RESULT_WRONG;
		for (int j = 0; j < i; j++)
			if (seen[i] == seen[j])
				return RESULT_WRONG;
		if (netpool_is_low(pool))
			netpool_refill(pool);
	}
	return RESULT_FINE;
}

static void every_box_gets_a_network_of_its_own(void **state)
{
	(void)state;
	run_apart(take_many);
}

static enum result take_alone(struct netpool *pool)
{
	if (kill(pool->helper, SIGKILL) < 0)
		return RESULT_WRONG;
	return take_many(pool);
}

static void a_dead_helper_is_done_without(void **state)
{
	(void)state;
	run_apart(take_alone);
}

static enum result go_and_return(struct netpool *pool)
{
	ino_t home = own_inode();
	int net = netpool_take(pool);

	if (netpool_visit(net) < 0 || own_inode() != inode_of(net))
		return RESULT_WRONG;
	netpool_return(pool);
	return own_inode() == home ? RESULT_FINE : RESULT_WRONG;
}

static void a_visit_ends_at_home(void **state)
{
	(void)state;
	run_apart(go_and_return);
}

/* What a box may have done in its network. Return: a descriptor that keeps it done, 0 or -1. */
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
	struct sockaddr_in to = address(0xc0000201); /* 192.0.2.1: there is no way to it */

	return connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0 ? 0 : -1;
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
	bool again; /* whether another box may have it */
} USES[] = {
	{"nothing was done",             do_nothing,       true },
	{"sockets were made and closed", use_and_close,    true },
	{"a packet was sent",            send_packet,      false},
	{"a connection was refused",     be_refused,       false},
	{"a socket is left",             leave_listener,   false},
	{"a flow label lingers",         leave_flow_label, false},
};

/* Gives @net back and takes more than are in stock. Return: whether it is among them. */
static bool comes_back(struct netpool *pool, int net)
{
	ino_t given = inode_of(net);
	bool found = false;

	netpool_give(pool, net);
	for (int i = 0; i < TAKEN; i++) {
		int other = netpool_take(pool);

		found = found || inode_of(other) == given;
		netpool_refill(pool);
	}
	return found;
}

static enum result use_and_give(struct netpool *pool)
{
	for (size_t i = 0; i < ARRAY_SIZE(USES); i++) {
		int net = netpool_take(pool), kept;
		bool again;

		netpool_refill(pool);
		if (netpool_visit(net) < 0)
			return RESULT_WRONG;
		kept = USES[i].act();
		netpool_return(pool);
		if (kept == -EAFNOSUPPORT) /* a host without IPv6 has no flow labels */
			continue;
		if (kept < 0) {
			print_error("cannot be tried: %s\n", USES[i].what);
			return RESULT_WRONG;
		}
		/* The descriptors of those taken keep their inodes' numbers from being used again.
		 */
		again = comes_back(pool, net);
		if (again != USES[i].again) {
			print_error("%s: given again: %d\n", USES[i].what, again);
			return RESULT_WRONG;
		}
	}
	return RESULT_FINE;
}

static void only_an_unused_one_serves_another_box(void **state)
{
	(void)state;
	run_apart(use_and_give);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_box_gets_a_network_of_its_own),
		cmocka_unit_test(a_dead_helper_is_done_without),
		cmocka_unit_test(a_visit_ends_at_home),
		cmocka_unit_test(only_an_unused_one_serves_another_box),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
