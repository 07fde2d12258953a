/* SPDX-License-Identifier: Apache-2.0 */
#include "native_rig.h"

/* How many of the next sends fail with a full socket. */
static unsigned full_for;

int __real_fd_send(int sock, const void *data, size_t len, const int *fds, size_t count);
int __wrap_fd_send(int sock, const void *data, size_t len, const int *fds, size_t count);
int __wrap_fd_send(int sock, const void *data, size_t len, const int *fds, size_t count)
{
	if (full_for > 0) {
		full_for--;
		return -EAGAIN;
	}
	return __real_fd_send(sock, data, len, fds, count);
}

static void required_layers_do_not_depend_on_who_starts(void **state)
{
	static const enum engine_ids ids[] = {ENGINE_IDS_RANGE, ENGINE_IDS_SUBID,
	                                      ENGINE_IDS_SINGLE};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		const struct engine_probe probe = {.ids = ids[i]};
		struct native_config config = {.strict = true};
		struct driver *d = native_new(&config, -1, 0, &probe);

		assert_int_equal(d->caps.required_layers, LAYERS_STRICT);
		driver_free(d);
		config.strict = false;
		d = native_new(&config, -1, 0, &probe);
		assert_int_equal(d->caps.required_layers, LAYERS_BEST_EFFORT);
		driver_free(d);
	}
}

static void capabilities_come_from_the_probe(void **state)
{
	struct native_rig *rig = *state;
	const struct driver_caps *caps = &rig->driver->caps;

	assert_string_equal(rig->driver->ops->name, "native");
	assert_int_equal(caps->layers, LAYERS_ALL);
	assert_int_equal(caps->required_layers, LAYERS_STRICT);
	assert_int_equal(caps->landlock_abi, 4);
	assert_int_equal(caps->boxes_max, 3);
	assert_int_equal(caps->daemon_uid, 77);
	assert_true(caps->can_freeze);
	assert_true(caps->counts_usage);
	assert_string_equal(caps->cgroup, "hybrid");
	assert_string_equal(caps->ids, "range");
}

static void the_end_of_the_engine_is_the_end_of_all_boxes(void **state)
{
	struct native_rig *rig = *state;
	struct box_spec spec = sample_spec("d");
	struct box *ready, *asked, *destroying, *none = NULL;

	destroying = rig_create(rig, "a");
	asked = rig_create(rig, "b");
	(void)rig_hear(rig, ENGINE_CREATE);
	(void)rig_hear(rig, ENGINE_CREATE);
	(void)rig_ready(rig, "c", &ready);
	box_destroy(destroying);
	rig->engine = fd_close(rig->engine);
	rig_run(rig);
	recorder_expect(&rig->rec, "lost(UNAVAILABLE) lost(UNAVAILABLE) engine_lost(UNAVAILABLE) "
	                           "gone ");
	assert_true(rig_was_killed(rig)); /* without any help */
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &none, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_UNAVAILABLE);
	error_clear(&rig->err);
	assert_int_equal(box_freeze(ready, true, &rig->err), -1);
	box_destroy(ready);
	box_destroy(asked);
	recorder_expect(&rig->rec, "");
	rig_run(rig);
	recorder_expect(&rig->rec, "gone gone ");
	assert_int_equal(rig->engine_losses, 1);
}

static void a_box_requested_after_the_engines_death_is_refused(void **state)
{
	struct native_rig *rig = *state;
	struct box_spec spec = sample_spec("a");
	struct box *box = NULL;

	rig->engine = fd_close(rig->engine); /* the loop has not seen it yet */
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_UNAVAILABLE);
	recorder_expect(&rig->rec, "");
}

static void a_box_destroyed_after_the_engines_death_goes(void **state)
{
	struct native_rig *rig = *state;
	struct box *box;

	(void)rig_ready(rig, "a", &box);
	rig->engine = fd_close(rig->engine);
	box_destroy(box); /* DESTROY cannot be sent; the loop will find out why */
	recorder_expect(&rig->rec, "");
	rig_run(rig);
	recorder_expect(&rig->rec, "engine_lost(UNAVAILABLE) gone ");
}

static void a_full_socket_delays_requests_and_keeps_their_order(void **state)
{
	struct native_rig *rig = *state;
	struct engine_request request;
	struct box *box;

	full_for = 1;
	box = rig_create(rig, "a");
	box_destroy(box);
	(void)rig_create(rig, "b");
	rig_hear_nothing(rig);
	full_for = 1; /* once more, from the loop */
	rig_run(rig);
	request = rig_hear(rig, ENGINE_CREATE);
	assert_string_equal(request.box_id, "a");
	assert_string_equal(rig_hear(rig, ENGINE_DESTROY).box_id, "a");
	assert_string_equal(rig_hear(rig, ENGINE_CREATE).box_id, "b");
	rig_hear_nothing(rig);
	assert_int_equal(full_for, 0);
}

static void requests_that_wait_go_with_the_driver(void **state)
{
	struct native_rig *rig = *state;

	full_for = 1;
	(void)rig_create(rig, "a");
	driver_free(rig->driver);
	rig->driver = NULL;
	rig_run(rig);
	recorder_expect(&rig->rec, "");
}

static void freeing_kills_what_is_left_without_a_callback(void **state)
{
	struct native_rig *rig = *state;
	struct box *box;
	char c;

	(void)rig_ready(rig, "a", &box);
	driver_free(rig->driver);
	rig->driver = NULL;
	rig_run(rig);
	assert_true(rig_was_killed(rig));
	recorder_expect(&rig->rec, "");
	assert_int_equal(recv(rig->engine, &c, 1, MSG_DONTWAIT),
	                 0); /* the engine's socket is closed */
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(required_layers_do_not_depend_on_who_starts),
		TEST(capabilities_come_from_the_probe),
		TEST(the_end_of_the_engine_is_the_end_of_all_boxes),
		TEST(a_box_requested_after_the_engines_death_is_refused),
		TEST(a_box_destroyed_after_the_engines_death_goes),
		TEST(a_full_socket_delays_requests_and_keeps_their_order),
		TEST(requests_that_wait_go_with_the_driver),
		TEST(freeing_kills_what_is_left_without_a_callback),
	};

	return cmocka_run_group_tests_name("driver/native", tests, NULL, NULL);
}
