/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/log.h"
#include "daemon/reload.h"

struct part {
	int calls;
	bool fails;
};

static int run(void *ctx, struct error *err)
{
	struct part *part = ctx;

	part->calls++;
	return part->fails ? error_set(err, ERR_CONFIG, 0, "x.yaml:3: no") : 0;
}

static void one_that_fails_does_not_hold_up_the_others(void **state)
{
	struct part parts[3] = {{0}, {.fails = true}, {0}};
	struct reload reload = {0};

	(void)state;
	assert_int_equal(reload_run(&reload), 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		reload_add(&reload, &(struct reload_part){"parts", run, &parts[i]});
	assert_int_equal(reload_run(&reload), 1);
	parts[1].fails = false;
	assert_int_equal(reload_run(&reload), 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		assert_int_equal(parts[i].calls, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_fails_does_not_hold_up_the_others),
	};

	log_setup("test", LOG_LEVEL_ERR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
