/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sched.h>
#include <sys/stat.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_box_gets_a_network_of_its_own),
		cmocka_unit_test(a_dead_helper_is_done_without),
		cmocka_unit_test(a_visit_ends_at_home),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
