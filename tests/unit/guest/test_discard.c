/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/discard.h"

struct rig {
	struct discard discard;
	int writers[DISCARD_MAX + 4];
};

static int setup(void **state)
{
	static struct rig rig;

	discard_init(&rig.discard);
	for (size_t i = 0; i < DISCARD_MAX + 4; i++)
		rig.writers[i] = -1;
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	for (size_t i = 0; i < DISCARD_MAX + 4; i++)
		(void)fd_close(rig->writers[i]);
	for (size_t i = 0; i < DISCARD_MAX; i++)
		(void)fd_close(rig->discard.fds[i]);
	return 0;
}

static void add(struct rig *rig, size_t i)
{
	int ends[2];

	assert_int_equal(fd_pipe(ends, O_NONBLOCK), 0);
	discard_add(&rig->discard, ends[0]);
	rig->writers[i] = ends[1];
}

static void round_of(struct rig *rig)
{
	struct pollfd fds[DISCARD_MAX];
	char scratch[64];

	discard_watch(&rig->discard, fds);
	assert_true(poll(fds, DISCARD_MAX, 0) >= 0);
	discard_pump(&rig->discard, fds, scratch, sizeof(scratch));
}

static size_t count(const struct rig *rig)
{
	size_t n = 0;

	while (n < DISCARD_MAX && rig->discard.fds[n] >= 0)
		n++;
	for (size_t i = n; i < DISCARD_MAX; i++)
		assert_int_equal(rig->discard.fds[i], -1);
	return n;
}

static bool is_open(const struct rig *rig, size_t i)
{
	return write(rig->writers[i], "x", 1) == 1;
}

static void late_output_is_discarded(void **state)
{
	struct rig *rig = *state;
	char much[128] = {0};
	int waiting = 0;

	add(rig, 0);
	assert_int_equal(write(rig->writers[0], much, sizeof(much)), sizeof(much));
	round_of(rig);
	round_of(rig);
	struct pollfd p = {.fd = rig->discard.fds[0], .events = POLLIN};
	waiting = poll(&p, 1, 0);
	assert_int_equal(waiting, 0);
	assert_int_equal(count(rig), 1);
}

static void pipes_at_their_end_are_forgotten_whatever_their_place(void **state)
{
	struct rig *rig = *state;

	for (size_t i = 0; i < 5; i++)
		add(rig, i);
	for (size_t i = 0; i < 5; i += 2)
		rig->writers[i] = fd_close(rig->writers[i]);
	round_of(rig);
	assert_int_equal(count(rig), 2);
	assert_true(is_open(rig, 1) && is_open(rig, 3));
	rig->writers[1] = fd_close(rig->writers[1]);
	rig->writers[3] = fd_close(rig->writers[3]);
	round_of(rig); /* what was written last */
	round_of(rig);
	assert_int_equal(count(rig), 0);
}

static void oldest_gives_way(void **state)
{
	struct rig *rig = *state;

	for (size_t i = 0; i < DISCARD_MAX + 4; i++)
		add(rig, i);
	assert_int_equal(count(rig), DISCARD_MAX);
	for (size_t i = 0; i < DISCARD_MAX + 4; i++)
		assert_int_equal(is_open(rig, i), i >= 4);
}

static void a_missing_descriptor_is_ignored(void **state)
{
	struct rig *rig = *state;

	discard_add(&rig->discard, -1);
	assert_int_equal(count(rig), 0);
	round_of(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(late_output_is_discarded, setup, teardown),
		cmocka_unit_test_setup_teardown(
			pipes_at_their_end_are_forgotten_whatever_their_place, setup, teardown),
		cmocka_unit_test_setup_teardown(oldest_gives_way, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_descriptor_is_ignored, setup, teardown),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
