/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "core/config/config.h"
#include "daemon/isolation.h"
#include "driver/driver.h"
#include "wire/layer.h"

static int check(enum config_isolation isolation, uint32_t layers, struct error *err)
{
	bool strict = isolation == CONFIG_ISOLATION_STRICT;
	const struct config config = {.isolation = isolation};
	const struct driver_caps caps = {
		.layers = layers, .required_layers = strict ? LAYERS_STRICT : LAYERS_BEST_EFFORT};

	*err = (struct error){0};
	return isolation_check_least(&caps, err) < 0 ? -1 : isolation_check(&config, &caps, err);
}

static void strict_refuses_without_any_required_layer(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(check(CONFIG_ISOLATION_STRICT, LAYERS_STRICT, &err), 0);
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		bool is_required = LAYERS_STRICT & LAYER_BIT(i);
		bool is_least = LAYERS_BEST_EFFORT & LAYER_BIT(i);

		assert_int_equal(check(CONFIG_ISOLATION_STRICT, LAYERS_ALL & ~LAYER_BIT(i), &err),
		                 is_required ? -1 : 0);
		if (!is_required)
			continue;
		assert_non_null(strstr(err.msg, layer_name((enum wire_layer)i)));
		/* Offered only where it helps. */
		assert_int_equal(strstr(err.msg, "isolation: best-effort") != NULL, !is_least);
	}
}

static void best_effort_needs_the_least(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(check(CONFIG_ISOLATION_BEST_EFFORT, LAYERS_BEST_EFFORT, &err), 0);
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		assert_int_equal(
			check(CONFIG_ISOLATION_BEST_EFFORT, LAYERS_ALL & ~LAYER_BIT(i), &err),
			LAYERS_BEST_EFFORT & LAYER_BIT(i) ? -1 : 0);
}

static void every_missing_layer_is_named(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(check(CONFIG_ISOLATION_STRICT, 0, &err), -1);
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (LAYERS_BEST_EFFORT & LAYER_BIT(i))
			assert_non_null(strstr(err.msg, layer_name((enum wire_layer)i)));
	assert_int_equal(check(CONFIG_ISOLATION_STRICT, LAYERS_BEST_EFFORT, &err), -1);
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (LAYERS_STRICT & ~LAYERS_BEST_EFFORT & LAYER_BIT(i))
			assert_non_null(strstr(err.msg, layer_name((enum wire_layer)i)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strict_refuses_without_any_required_layer),
		cmocka_unit_test(best_effort_needs_the_least),
		cmocka_unit_test(every_missing_layer_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
