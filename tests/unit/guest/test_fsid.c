/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/fsid.h"

#define SOMEBODY 12345u

/* In a child: the next test must not see what it changes. */
static int in_child(int (*look)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(look());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool pipe_belongs_to(uid_t uid)
{
	int ends[2];
	struct stat st;

	return fd_pipe(ends, 0) == 0 && fstat(ends[1], &st) == 0 && st.st_uid == uid &&
	       st.st_gid == uid;
}

static int make_a_pipe(void)
{
	struct fsid ids;

	if (fsid_take(&ids, SOMEBODY, SOMEBODY) < 0)
		return 1;
	if (!pipe_belongs_to(SOMEBODY))
		return 2;
	if (fsid_give_back(&ids) < 0)
		return 3;
	return pipe_belongs_to(geteuid()) ? 0 : 4;
}

static int stay_the_same(void)
{
	struct fsid ids;
	int signo = 0;

	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return 1;
	if (fsid_take(&ids, SOMEBODY, SOMEBODY) < 0 || fsid_give_back(&ids) < 0)
		return 2;
	if (prctl(PR_GET_PDEATHSIG, &signo) < 0 || signo != SIGKILL)
		return 3;
	return prctl(PR_GET_DUMPABLE) == 0 ? 0 : 4;
}

static int take_what_is_not_ours(void)
{
	struct fsid ids;

	if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 ||
	    setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0)
		return 1;
	if (fsid_take(&ids, SOMEBODY + 1, SOMEBODY + 1) == 0)
		return 2;
	return fsid_give_back(&ids) == 0 ? 0 : 3;
}

static void needs_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void pipes_belong_to_whom_they_are_made_for(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(in_child(make_a_pipe), 0);
}

static void the_agent_still_ends_with_its_parent_and_cannot_be_dumped(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(in_child(stay_the_same), 0);
}

static void ids_that_are_refused_are_an_error(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(in_child(take_what_is_not_ours), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipes_belong_to_whom_they_are_made_for),
		cmocka_unit_test(the_agent_still_ends_with_its_parent_and_cannot_be_dumped),
		cmocka_unit_test(ids_that_are_refused_are_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
