/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "core/config/config.h"
#include "core/policy/policies.h"
#include "core/policy/policy.h"
#include "wire/layer.h"

/* Which network a box keeps when policies change; test_policy_rules.c tests what a new one gets. */

static struct policy *parse(const char *name, const char *text)
{
	cleanup_free char *whole = text ? xasprintf("name: %s\n%s", name, text) : NULL;
	struct error err = {0};
	struct policy *policy = text ? policy_parse(whole, strlen(whole), name, &err) : NULL;

	if (text && !policy)
		fail_msg("%s", err.msg);
	return policy;
}

/* The same whatever other layers the machine lacks, and whatever else a policy requires. */
static void a_box_keeps_network_host_only_without_layer_net(void **state)
{
	static const struct {
		const char *own, *chosen;
		const char *refused; /* NULL: kept */
	} rows[] = {
		{"network: {mode: host}", NULL, NULL},
		{"network: {mode: host}\nisolation: {require: [seccomp, cgroup]}", NULL, NULL},
		{"network: {mode: host}\nisolation: {min: full}", NULL, "own: isolation.min: "},
		{"network: {mode: host}\nisolation: {min: standard}", NULL, "own: isolation.min: "},
		{"network: {mode: host}\nisolation: {require: [cgroup, net]}", NULL,
	         "own: isolation.require: "},
		{"network: {mode: host}\nisolation: {require: [cgroup]}",
	         "network: {mode: host}\nisolation: {require: [net]}",
	         "chosen: isolation.require: "},
		{"network: {mode: host}\nisolation: {require: [net]}",
	         "network: {mode: host}\nisolation: {require: [cgroup]}",
	         "own: isolation.require: "},
		{"network: {mode: bridge}", NULL, "own: network.mode: "},
	};
	static const uint32_t layers[] = {LAYERS_ALL, LAYERS_ALL & ~LAYER_BIT(LAYER_CGROUP_NS),
	                                  LAYERS_ALL & ~LAYER_BIT(LAYER_USER), 0};
	struct error err = {0};
	struct config *config = config_load(NULL, NULL, 0, &err);
	struct driver driver = {.name = "native"};
	const struct policy_rules rules = {.config = config, .driver = &driver};

	(void)state;
	assert_non_null(config);
	for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(layers); i++) {
		const char *refused = rows[i / ARRAY_SIZE(layers)].refused;
		struct policy *own = parse("own", rows[i / ARRAY_SIZE(layers)].own);
		struct policy *chosen = parse("chosen", rows[i / ARRAY_SIZE(layers)].chosen);
		uint16_t ranges = 0;
		int r;

		driver.caps.layers = layers[i % ARRAY_SIZE(layers)];
		error_clear(&err);
		r = policy_check_network(&rules, &(struct policy_stack){own, chosen},
		                         BOX_NETWORK_HOST, &ranges, &err);
		assert_int_equal(r, refused ? -1 : 0);
		assert_int_equal(err.code, refused ? ERR_DENIED : ERR_NONE);
		if (refused && !strstr(err.msg, refused))
			fail_msg("%s", err.msg);
		policy_unref(own);
		policy_unref(chosen);
	}
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_box_keeps_network_host_only_without_layer_net),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
