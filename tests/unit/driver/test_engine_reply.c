/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_rig.h"

/* After a protocol violation the engine is given up. */
static void expect_given_up(struct engine_rig *rig)
{
	rig_run(rig);
	assert_int_equal(rig->engine_losses, 1);
	assert_int_equal(rig->engine_err.code, ERR_PROTOCOL);
	recorder_expect(&rig->rec, "lost(PROTOCOL) engine_lost(PROTOCOL) ");
}

static void send_with_fds(struct engine_rig *rig, const struct engine_reply *reply, size_t count)
{
	int fds[FD_PASS_MAX] = {0};

	for (size_t i = 0; i < count; i++) {
		fds[i] = fd_memfd("x", 0);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(fd_send(rig->engine, reply, sizeof(*reply), fds, count), 0);
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
}

static void an_answer_of_the_wrong_size(void **state)
{
	struct engine_rig *rig = *state;

	(void)rig_create(rig, "a");
	assert_int_equal(fd_send(rig->engine, "x", 1, NULL, 0), 0);
	expect_given_up(rig);
}

static void an_answer_that_is_too_long(void **state)
{
	struct engine_rig *rig = *state;
	char data[sizeof(struct engine_reply) + 1] = "";

	(void)rig_create(rig, "a");
	assert_int_equal(fd_send(rig->engine, data, sizeof(data), NULL, 0), 0);
	expect_given_up(rig);
}

static void an_operation_that_is_not_a_reply(void **state)
{
	static const uint32_t ops[] = {ENGINE_OP_NONE, ENGINE_CREATE, ENGINE_PROBED,
	                               ENGINE_OP_COUNT, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct engine_rig *rig;
		struct engine_reply reply = {.op = ops[i], .box_id = "a"};

		if (i > 0)
			assert_int_equal(rig_setup(state), 0);
		rig = *state;
		(void)rig_create(rig, "a");
		assert_int_equal(fd_send(rig->engine, &reply, sizeof(reply), NULL, 0), 0);
		expect_given_up(rig);
		if (i + 1 < ARRAY_SIZE(ops))
			assert_int_equal(rig_teardown(state), 0);
	}
}

static void a_name_without_an_end(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_reply reply = {.op = ENGINE_GONE};

	memset(reply.box_id, 'a', sizeof(reply.box_id));
	(void)rig_create(rig, "a");
	assert_int_equal(fd_send(rig->engine, &reply, sizeof(reply), NULL, 0), 0);
	expect_given_up(rig);
}

static void descriptors_where_none_belong(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_reply reply = {.op = ENGINE_GONE, .box_id = "a"};

	(void)rig_create(rig, "a");
	send_with_fds(rig, &reply, 2);
	expect_given_up(rig); /* and the teardown finds both closed */
}

static void a_box_described_badly(void **state)
{
	static const struct {
		uint32_t mask, layers;
		size_t count;
	} bad[] = {
		{1U << ENGINE_FD_AGENT, 0, 2},                         /* one too many */
		{1U << ENGINE_FD_AGENT | 1U << ENGINE_FD_KILL, 0, 1},  /* one too few */
		{1U << ENGINE_FD_KILL, 0, 1},                          /* no agent */
		{1U << ENGINE_FD_AGENT | 1U << ENGINE_FD_COUNT, 0, 2}, /* an unknown one */
		{1U << ENGINE_FD_AGENT, LAYER_BIT(LAYER_COUNT), 1},    /* an unknown layer */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct engine_request request;
		struct engine_reply reply;
		struct engine_rig *rig;

		if (i > 0)
			assert_int_equal(rig_setup(state), 0);
		rig = *state;
		(void)rig_create(rig, "a");
		request = rig_hear(rig, ENGINE_CREATE);
		reply = reply_to(ENGINE_CREATED, &request);
		reply.created.fds = bad[i].mask;
		reply.created.layers = bad[i].layers;
		send_with_fds(rig, &reply, bad[i].count);
		expect_given_up(rig);
		if (i + 1 < ARRAY_SIZE(bad))
			assert_int_equal(rig_teardown(state), 0);
	}
}

static void a_box_made_twice(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box;
	struct engine_request request = rig_ready(rig, "a", &box);
	struct engine_reply reply = reply_to(ENGINE_CREATED, &request);

	reply.created.fds = 1U << ENGINE_FD_AGENT;
	send_with_fds(rig, &reply, 1);
	expect_given_up(rig);
}

static void an_unrequested_created_reply(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_reply reply = {.op = ENGINE_CREATED, .seq = 2, .box_id = "other"};

	(void)rig_create(rig, "a");
	reply.created.fds = 1U << ENGINE_FD_AGENT;
	send_with_fds(rig, &reply, 1);
	expect_given_up(rig);
}

static void an_answer_to_another_request(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request request;
	struct engine_reply reply;

	(void)rig_create(rig, "a");
	request = rig_hear(rig, ENGINE_CREATE);
	reply = reply_to(ENGINE_CREATED, &request);
	reply.seq++;
	reply.created.fds = 1U << ENGINE_FD_AGENT;
	send_with_fds(rig, &reply, 1);
	expect_given_up(rig);
}

static void an_unrequested_frozen_reply(void **state)
{
	struct engine_rig *rig = *state;
	struct box *box;
	struct engine_request request = rig_ready(rig, "a", &box);
	struct engine_reply reply = reply_to(ENGINE_FROZEN, &request);

	assert_int_equal(fd_send(rig->engine, &reply, sizeof(reply), NULL, 0), 0);
	expect_given_up(rig);
}

static void an_error_without_an_end_or_a_code_is_tamed(void **state)
{
	struct engine_rig *rig = *state;
	struct engine_request request;
	struct engine_reply reply;

	(void)rig_create(rig, "a");
	request = rig_hear(rig, ENGINE_CREATE);
	reply = reply_to(ENGINE_FAILED, &request);
	memset(&reply.error, 'x', sizeof(reply.error));
	rig_reply(rig, &reply);
	recorder_expect(&rig->rec, "lost(BOX_FAILED) ");
	assert_int_equal(strlen(rig->rec.err.msg), sizeof(rig->rec.err.msg) - 1);
	assert_int_equal(rig->engine_losses, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_of_the_wrong_size),
		TEST(an_answer_that_is_too_long),
		TEST(an_operation_that_is_not_a_reply),
		TEST(a_name_without_an_end),
		TEST(descriptors_where_none_belong),
		TEST(a_box_described_badly),
		TEST(a_box_made_twice),
		TEST(an_unrequested_created_reply),
		TEST(an_answer_to_another_request),
		TEST(an_unrequested_frozen_reply),
		TEST(an_error_without_an_end_or_a_code_is_tamed),
	};

	return cmocka_run_group_tests_name("driver/engine_reply", tests, NULL, NULL);
}
