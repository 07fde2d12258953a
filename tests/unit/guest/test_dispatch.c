/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "guest/dispatch.h"
#include "wire/msg.h"

static enum dispatch_verdict check(unsigned type, uint32_t id, bool is_set_up)
{
	const struct frame frame = {.type = (uint16_t)type, .id = id};

	return dispatch_check(&frame, is_set_up);
}

static void setup_comes_first_and_once(void **state)
{
	(void)state;
	assert_int_equal(check(MSG_SETUP, 0, false), DISPATCH_OK);
	assert_int_equal(check(MSG_SETUP, 0, true), DISPATCH_REPEATED);
	assert_int_equal(check(MSG_SETUP, 1, false), DISPATCH_WRONG_ID);
}

/* What belongs to an execution. */
static const unsigned of_execution[] = {
	MSG_PUT_BEGIN, MSG_PUT_DATA,  MSG_PUT_END, MSG_EXEC,
	MSG_STDIN,     MSG_STDIN_END, MSG_SIGNAL,  MSG_RUN,
};

static void only_setup_and_bye_may_come_before_setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of_execution); i++)
		assert_int_equal(check(of_execution[i], 1, false), DISPATCH_TOO_EARLY);
	assert_int_equal(check(MSG_BYE, 0, false), DISPATCH_OK);
}

static void messages_of_an_execution_have_an_id(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(of_execution); i++) {
		assert_int_equal(check(of_execution[i], 1, true), DISPATCH_OK);
		assert_int_equal(check(of_execution[i], 0, true), DISPATCH_WRONG_ID);
	}
	assert_int_equal(check(MSG_BYE, 1, true), DISPATCH_WRONG_ID);
}

static void messages_of_the_agent_and_unknown_ones_are_refused(void **state)
{
	(void)state;
	for (unsigned type = MSG_HELLO; type < MSG_RUN; type++)
		assert_int_equal(check(type, 0, true), DISPATCH_UNKNOWN);
	for (unsigned type = MSG_COUNT; type < MSG_COUNT + 10; type++)
		assert_int_equal(check(type, 0, true), DISPATCH_UNKNOWN);
	assert_int_equal(check(MSG_NONE, 0, true), DISPATCH_UNKNOWN);
	assert_int_equal(check(UINT16_MAX, 0, true), DISPATCH_UNKNOWN);
}

static void every_verdict_has_a_name(void **state)
{
	(void)state;
	for (int verdict = DISPATCH_OK; verdict <= DISPATCH_WRONG_ID; verdict++)
		assert_non_null(dispatch_verdict_name((enum dispatch_verdict)verdict));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(setup_comes_first_and_once),
		cmocka_unit_test(only_setup_and_bye_may_come_before_setup),
		cmocka_unit_test(messages_of_an_execution_have_an_id),
		cmocka_unit_test(messages_of_the_agent_and_unknown_ones_are_refused),
		cmocka_unit_test(every_verdict_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
