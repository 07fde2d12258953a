/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/docker_groups.h"
#include "unit.h"

#include "base/attr.h"
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void open_of(const char *id, json_int_t pid, int fds[ENGINE_FD_COUNT])
{
	json_t *container = json_pack("{s:s, s:{s:I}}", "Id", id, "State", "Pid", pid);

	for (unsigned i = 0; i < ENGINE_FD_COUNT; i++)
		fds[i] = -1;
	docker_groups_open(container, fds);
	json_decref(container);
}

/* The server says that the container is this process, or another that it is not. */
static void groups_that_do_not_name_the_container_are_not_its(void **state)
{
	static const struct {
		const char *id;
		json_int_t pid; /* 0: this process */
	} lies[] = {
		{ID, 0}, {ID, 1},  {ID, -1},        {ID, INT64_MAX},
		{"", 0}, {"/", 0}, {"../../..", 0}, {"g", 0},
	};
	int fds[ENGINE_FD_COUNT];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		open_of(lies[i].id, lies[i].pid ? lies[i].pid : getpid(), fds);
		for (unsigned n = 0; n < ENGINE_FD_COUNT; n++)
			assert_int_equal(fds[n], -1);
	}
	docker_groups_open(NULL, fds);
	assert_int_equal(fds[ENGINE_FD_MEMORY], -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_that_do_not_name_the_container_are_not_its),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
