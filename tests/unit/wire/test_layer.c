/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "wire/layer.h"

static void every_layer_has_a_name_a_loss_and_a_remedy(void **state)
{
	(void)state;
	for (int i = 0; i < LAYER_COUNT; i++) {
		assert_true(strlen(layer_name((enum wire_layer)i)) > 1);
		assert_true(strlen(layer_loss((enum wire_layer)i)) > 10);
		assert_true(strlen(layer_remedy((enum wire_layer)i)) > 10);
		for (int other = 0; other < i; other++)
			assert_string_not_equal(layer_name((enum wire_layer)i),
			                        layer_name((enum wire_layer)other));
	}
}

static void the_names_of_the_interface_are_kept(void **state)
{
	(void)state;
	assert_string_equal(layer_name(LAYER_USER), "user");
	assert_string_equal(layer_name(LAYER_CGROUP_NS), "cgroup");
	assert_string_equal(layer_name(LAYER_CGROUP_MEMORY), "cgroup.memory");
	assert_string_equal(layer_name(LAYER_UID_RANGE), "uid_range");
	assert_string_equal(layer_name(LAYER_LANDLOCK), "landlock");
	assert_string_equal(layer_name(LAYER_RLIMITS), "rlimits");
}

static void a_layer_from_a_newer_peer_is_unknown(void **state)
{
	(void)state;
	assert_string_equal(layer_name(LAYER_COUNT), "?");
	assert_string_equal(layer_loss((enum wire_layer)99), "?");
	assert_string_equal(layer_remedy((enum wire_layer)99), "?");
}

static void the_mask_has_exactly_the_layers(void **state)
{
	uint32_t mask = 0;

	(void)state;
	for (int i = 0; i < LAYER_COUNT; i++)
		mask |= LAYER_BIT(i);
	assert_int_equal(mask, LAYERS_ALL);
}

static void strict_lacks_only_what_a_box_is_safe_without(void **state)
{
	(void)state;
	assert_int_equal(LAYERS_ALL & ~LAYERS_STRICT, LAYER_BIT(LAYER_TIME) |
	                                                      LAYER_BIT(LAYER_LANDLOCK) |
	                                                      LAYER_BIT(LAYER_CGROUP_IO));
	assert_int_equal(LAYERS_BEST_EFFORT & ~LAYERS_STRICT, 0);
	assert_int_equal(LAYERS_STRICT & ~LAYERS_BEST_EFFORT,
	                 LAYER_BIT(LAYER_IPC) | LAYER_BIT(LAYER_UTS) | LAYER_BIT(LAYER_CGROUP_NS) |
	                         LAYER_BIT(LAYER_CGROUP_MEMORY) | LAYER_BIT(LAYER_CGROUP_PIDS) |
	                         LAYER_BIT(LAYER_CGROUP_CPU) | LAYER_BIT(LAYER_UID_RANGE) |
	                         LAYER_BIT(LAYER_RLIMITS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layer_has_a_name_a_loss_and_a_remedy),
		cmocka_unit_test(the_names_of_the_interface_are_kept),
		cmocka_unit_test(a_layer_from_a_newer_peer_is_unknown),
		cmocka_unit_test(the_mask_has_exactly_the_layers),
		cmocka_unit_test(strict_lacks_only_what_a_box_is_safe_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
