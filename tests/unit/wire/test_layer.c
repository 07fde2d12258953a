/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "wire/layer.h"

#define DAEMON "/usr/bin/milliboxd"

static const char *remedy_of(enum wire_layer layer, enum layer_starter starter)
{
	static char text[LAYER_REMEDY_MAX];

	layer_remedy(layer, starter, DAEMON, text);
	return text;
}

static void every_layer_has_a_name_a_loss_and_a_remedy(void **state)
{
	(void)state;
	for (int i = 0; i < LAYER_COUNT; i++) {
		assert_true(strlen(layer_name((enum wire_layer)i)) > 1);
		assert_true(strlen(layer_loss((enum wire_layer)i)) > 10);
		for (int by = 0; by < LAYER_STARTER_COUNT; by++)
			assert_true(strlen(remedy_of((enum wire_layer)i, (enum layer_starter)by)) >
			            10);
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
	assert_string_equal(remedy_of((enum wire_layer)99, LAYER_STARTER_USER), "?");
}

static void a_command_is_offered_only_where_it_works(void **state)
{
	(void)state;
	for (int by = 0; by < LAYER_STARTER_COUNT; by++) {
		const char *text = remedy_of(LAYER_CGROUP_MEMORY, (enum layer_starter)by);
		bool has_scope = by == LAYER_STARTER_SCOPE || by == LAYER_STARTER_LINGER;

		assert_int_equal(strstr(text, "systemd-run") != NULL, has_scope);
		assert_int_equal(strstr(text, "Delegate=yes " DAEMON) != NULL, has_scope);
		assert_int_equal(strstr(text, "systemd unit") != NULL, by == LAYER_STARTER_UNIT);
		assert_int_equal(strstr(text, "as root") != NULL,
		                 by == LAYER_STARTER_UNIT || by == LAYER_STARTER_USER);
	}
	assert_int_equal(layer_starter(true, SYSTEMD_DELEGATES), LAYER_STARTER_ROOT);
	assert_int_equal(layer_starter(false, SYSTEMD_DELEGATES), LAYER_STARTER_SCOPE);
	assert_int_equal(layer_starter(false, SYSTEMD_NO_MANAGER), LAYER_STARTER_LINGER);
	assert_int_equal(layer_starter(false, SYSTEMD_V1), LAYER_STARTER_UNIT);
	assert_int_equal(layer_starter(false, SYSTEMD_NONE), LAYER_STARTER_USER);
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
		cmocka_unit_test(a_command_is_offered_only_where_it_works),
		cmocka_unit_test(the_mask_has_exactly_the_layers),
		cmocka_unit_test(strict_lacks_only_what_a_box_is_safe_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
