/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_rig.h"

/* How many of the next sends fail with a full socket. */
static unsigned full_for;
/* After these, how many fail for another reason, while the engine lives. */
static unsigned fail_for;

int __real_fd_send(int sock, const void *data, size_t len, const int *fds, size_t count);
int __wrap_fd_send(int sock, const void *data, size_t len, const int *fds, size_t count);
int __wrap_fd_send(int sock, const void *data, size_t len, const int *fds, size_t count)
{
	if (full_for > 0) {
		full_for--;
		return -EAGAIN;
	}
	if (fail_for > 0) {
		fail_for--;
		return -ENOBUFS;
	}
	return __real_fd_send(sock, data, len, fds, count);
}

static void ignore_loss(void *ctx attr_unused, const struct error *err attr_unused)
{
}

static void required_layers_do_not_depend_on_who_starts(void **state)
{
	static const enum engine_ids ids[] = {ENGINE_IDS_RANGE, ENGINE_IDS_SUBID,
	                                      ENGINE_IDS_SINGLE};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		const struct engine_probe probe = {.ids = ids[i]};
		struct engine_config config = {.is_native = true,
		                               .strict = true,
		                               .agent_path = "/nonexistent/agent",
		                               .on_engine_lost = ignore_loss};
		struct driver *d = engine_driver_new(&config, -1, 0, &probe);

		assert_int_equal(d->caps.required_layers, LAYERS_STRICT);
		driver_free(d);
		config.strict = false;
		d = engine_driver_new(&config, -1, 0, &probe);
		assert_int_equal(d->caps.required_layers, LAYERS_BEST_EFFORT);
		driver_free(d);
	}
}

/* Of an engine that is not native: what it promised, and where the kernel is shared no less than
 * what makes a box. */
static void another_engine_is_held_to_its_word(void **state)
{
	const uint32_t least = LAYER_BIT(LAYER_PID) | LAYER_BIT(LAYER_MNT) | LAYER_BIT(LAYER_NET) |
	                       LAYER_BIT(LAYER_CAPS) | LAYER_BIT(LAYER_NO_NEW_PRIVS);
	const struct {
		enum engine_grade grade;
		uint32_t promised, required;
		bool is_used;
	} rows[] = {
		{ENGINE_GRADE_NAMESPACE, least, least, true},
		{ENGINE_GRADE_NAMESPACE, LAYERS_ALL, LAYERS_ALL, true},
		{ENGINE_GRADE_NAMESPACE, least & ~LAYER_BIT(LAYER_NET), least, false},
		{ENGINE_GRADE_GVISOR, LAYER_BIT(LAYER_PID), LAYER_BIT(LAYER_PID), true},
		{ENGINE_GRADE_VM, 0, 0, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct engine_probe probe = {.layers = rows[i].promised,
		                                   .grade = rows[i].grade};
		const struct engine_config config = {.name = "other",
		                                     .agent_path = "/nonexistent/agent"};
		struct driver *d = engine_driver_new(&config, -1, 0, &probe);

		assert_int_equal(d->caps.required_layers, rows[i].required);
		assert_int_equal(d->breaker.state == BREAKER_CLOSED, rows[i].is_used);
		driver_free(d);
	}
}

static void capabilities_come_from_the_probe(void **state)
{
	struct engine_rig *rig = *state;
	const struct driver_caps *caps = &rig->driver->caps;

	assert_string_equal(rig->driver->name, "native");
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
	struct engine_rig *rig = *state;
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
	struct engine_rig *rig = *state;
	struct box_spec spec = sample_spec("a");
	struct box *box = NULL;

	rig->engine = fd_close(rig->engine); /* the loop has not seen it yet */
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_UNAVAILABLE);
	recorder_expect(&rig->rec, "");
}

static void a_box_destroyed_after_the_engines_death_goes(void **state)
{
	struct engine_rig *rig = *state;
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
	struct engine_rig *rig = *state;
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

static struct box *ready_with_bridge(struct engine_rig *rig, const char *id)
{
	struct box_spec spec = sample_spec(id);
	struct engine_request request;
	struct box *box = NULL;

	spec.network = BOX_NETWORK_BRIDGE;
	rig->driver->caps.networks |= BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE);
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), 0);
	rig->rec.box = box;
	request = rig_hear(rig, ENGINE_CREATE);
	rig_created(rig, &request, RIG_ENGINE_LAYERS);
	rig_hello(rig, LINK_AGENT_LAYERS);
	recorder_expect(&rig->rec, "ready ");
	return box;
}

static void of_changes_of_a_network_that_wait_the_last_is_sent(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box = ready_with_bridge(rig, "a");
	struct engine_request request;

	box_set_ranges(box, 1);
	assert_int_equal(rig_hear(rig, ENGINE_REACH).ranges, 1);
	full_for = 1;
	for (uint16_t i = 2; i < 100; i++)
		box_set_ranges(box, i);
	rig_hear_nothing(rig);
	rig_run(rig);
	request = rig_hear(rig, ENGINE_REACH);
	assert_int_equal(request.ranges, 99);
	assert_int_equal(request.flags, ENGINE_FLAG_BRIDGE);
	rig_hear_nothing(rig);
	full_for = 1;
	box_set_ranges(box, 3);
	box_disconnect(box);
	rig_run(rig);
	request = rig_hear(rig, ENGINE_REACH);
	assert_int_equal(request.ranges, 0);
	assert_int_equal(request.flags, 0);
	rig_hear_nothing(rig);
	recorder_expect(&rig->rec, "");
}

/* At once, or after it waited. */
static void a_box_whose_network_cannot_be_changed_is_lost(void **state)
{
	struct engine_rig *rig = *state;

	for (unsigned waits = 0; waits < 2; waits++) {
		struct box *box = ready_with_bridge(rig, waits ? "b" : "a");
		struct engine_request request;

		full_for = waits;
		fail_for = 1;
		box_disconnect(box);
		assert_int_equal(rig_was_killed(rig), !waits);
		recorder_expect(&rig->rec, ""); /* not inside the call */
		rig_run(rig);
		assert_int_equal(full_for + fail_for, 0);
		assert_true(rig_was_killed(rig));
		recorder_expect(&rig->rec, "lost(AGENT_LOST) ");
		box_destroy(box);
		request = rig_hear(rig, ENGINE_DESTROY);
		rig_gone(rig, &request, request.seq);
		recorder_expect(&rig->rec, "gone ");
	}
	assert_int_equal(rig->engine_losses, 0);
}

static void requests_that_wait_go_with_the_driver(void **state)
{
	struct engine_rig *rig = *state;

	full_for = 1;
	(void)rig_create(rig, "a");
	driver_free(rig->driver);
	rig->driver = NULL;
	rig_run(rig);
	recorder_expect(&rig->rec, "");
}

static void freeing_kills_what_is_left_without_a_callback(void **state)
{
	struct engine_rig *rig = *state;
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

/* Return: the test's end of a second engine, for boxes with network host. */
static int add_host_network(struct engine_rig *rig)
{
	struct engine_driver *n = CONTAINER_OF(rig->driver, struct engine_driver, base);
	struct driver *second;
	int pair[2];

	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	second = engine_driver_new(&rig->config, pair[0], 0, &rig->probe);
	n->host_network = CONTAINER_OF(second, struct engine_driver, base);
	n->base.caps.networks |= BOX_NETWORK_BIT(BOX_NETWORK_HOST);
	assert_int_equal(engine_driver_attach_loop(second, rig->loop, &rig->err), 0);
	return pair[1];
}

static void boxes_with_network_host_are_the_second_engines(void **state)
{
	struct engine_rig *rig = *state;
	cleanup_close int second = add_host_network(rig);
	struct box_spec spec = sample_spec("h");
	struct engine_request request = {0};
	struct box *box = NULL;

	(void)rig_create(rig, "a");
	assert_false(rig_hear(rig, ENGINE_CREATE).flags & ENGINE_FLAG_HOST_NETWORK);
	spec.network = BOX_NETWORK_HOST;
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), 0);
	rig_hear_nothing(rig);
	assert_int_equal(recv(second, &request, sizeof(request), MSG_DONTWAIT), sizeof(request));
	assert_int_equal(request.op, ENGINE_CREATE);
	assert_true(request.flags & ENGINE_FLAG_HOST_NETWORK);
	box_destroy(box);
	rig_hear_nothing(rig);
	assert_int_equal(recv(second, &request, sizeof(request), MSG_DONTWAIT), sizeof(request));
	assert_int_equal(request.op, ENGINE_DESTROY);
}

static void without_a_second_engine_no_box_has_network_host(void **state)
{
	struct engine_rig *rig = *state;
	struct box_spec spec = sample_spec("h");
	struct box *box = NULL;
	bool frozen;

	spec.network = BOX_NETWORK_HOST;
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_UNAVAILABLE);
	error_clear(&rig->err);
	/* Even if the check of the capabilities were wrong. */
	rig->driver->caps.networks = ~0u;
	assert_int_equal(box_create(rig->driver, &spec, &rig->events, &box, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_UNAVAILABLE);
	error_clear(&rig->err);
	assert_int_equal(box_adopt(rig->driver, &spec, &rig->events, &box, &frozen, &rig->err), -1);
	assert_int_equal(rig->err.code, ERR_NOT_FOUND);
	rig_hear_nothing(rig);
}

static void the_end_of_the_second_engine_is_reported_too(void **state)
{
	struct engine_rig *rig = *state;
	int second = add_host_network(rig);

	(void)fd_close(second);
	rig_run(rig);
	recorder_expect(&rig->rec, "engine_lost(UNAVAILABLE) ");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(required_layers_do_not_depend_on_who_starts),
		TEST(another_engine_is_held_to_its_word),
		TEST(capabilities_come_from_the_probe),
		TEST(the_end_of_the_engine_is_the_end_of_all_boxes),
		TEST(a_box_requested_after_the_engines_death_is_refused),
		TEST(a_box_destroyed_after_the_engines_death_goes),
		TEST(a_full_socket_delays_requests_and_keeps_their_order),
		TEST(of_changes_of_a_network_that_wait_the_last_is_sent),
		TEST(a_box_whose_network_cannot_be_changed_is_lost),
		TEST(requests_that_wait_go_with_the_driver),
		TEST(freeing_kills_what_is_left_without_a_callback),
		TEST(boxes_with_network_host_are_the_second_engines),
		TEST(without_a_second_engine_no_box_has_network_host),
		TEST(the_end_of_the_second_engine_is_reported_too),
	};

	return cmocka_run_group_tests_name("driver/engine_driver", tests, NULL, NULL);
}
