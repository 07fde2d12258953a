/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "engine/zygote.h"

static struct host host;
static struct zygotes zygotes;

static void set_cpu_tree(bool v2)
{
	host.groups.count = 1;
	host.groups.trees[0] = (struct cgroup_tree){.v2 = v2, .kinds = CGROUP_BIT(CGROUP_CPU)};
	zygotes = (struct zygotes){.host = &host};
	zygotes.all[0].state = ZYGOTE_READY;
}

static enum engine_start start_with(uint32_t millicores)
{
	const struct engine_request req = {.zygote = 1, .limits.cpu_millicores = millicores};
	enum engine_start start = ENGINE_START_COUNT;
	const struct zygote *found = zygotes_find(&zygotes, &req, &start);

	assert_int_equal(found != NULL, start == ENGINE_START_ZYGOTE);
	return start;
}

static void small_quotas_start_cold_where_they_would_delay_the_zygote(void **state)
{
	(void)state;
	set_cpu_tree(true);
	assert_int_equal(start_with(10), ENGINE_START_QUOTA);
	assert_int_equal(start_with(99), ENGINE_START_QUOTA);
	assert_int_equal(start_with(100), ENGINE_START_ZYGOTE);
	assert_int_equal(start_with(0), ENGINE_START_ZYGOTE); /* no quota */
}

static void on_v1_every_quota_can_use_it(void **state)
{
	(void)state;
	set_cpu_tree(false);
	assert_int_equal(start_with(10), ENGINE_START_ZYGOTE);
}

static void a_tenant_gets_no_zygote_of_another(void **state)
{
	struct engine_request req = {.zygote = 1, .tenant = "alice"};
	enum engine_start start = ENGINE_START_COUNT;

	(void)state;
	set_cpu_tree(true);
	assert_null(zygotes_find(&zygotes, &req, &start));
	assert_int_equal(start, ENGINE_START_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_quotas_start_cold_where_they_would_delay_the_zygote),
		cmocka_unit_test(on_v1_every_quota_can_use_it),
		cmocka_unit_test(a_tenant_gets_no_zygote_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
