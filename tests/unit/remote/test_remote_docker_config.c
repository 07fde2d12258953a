/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/docker_config.h"
#include "unit.h"

#include "remote/docker.h"
#include <string.h>

#define MIB_OF(n) ((uint64_t)(n) << 20)

static const struct engine_limits limits = {
	.memory_bytes = MIB_OF(100),
	.workspace_bytes = MIB_OF(10),
	.tmp_bytes = MIB_OF(5),
	.shm_bytes = MIB_OF(3),
	.workspace_inodes = 77,
	.tmp_inodes = 33,
	.pids = 20,
	.cpu_millicores = 1500,
};

static struct docker_plan plan_of(void)
{
	return (struct docker_plan){
		.image = "image:1",
		.instance = "0123",
		.box_id = "box",
		.limits = &limits,
		.uid = 300007,
		.cpus = 2,
	};
}

static const char *text_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void nothing_is_left_to_the_servers_defaults(void **state)
{
	struct docker_plan plan = plan_of();
	json_t *config = docker_config(&plan);
	const json_t *host = json_object_get(config, "HostConfig");
	const json_t *log = json_object_get(host, "LogConfig");

	(void)state;
	assert_string_equal(text_at(config, "User"), "300007:300007");
	assert_string_equal(text_at(host, "NetworkMode"), "none");
	assert_true(json_is_true(json_object_get(config, "NetworkDisabled")));
	assert_string_equal(json_string_value(json_array_get(json_object_get(host, "CapDrop"), 0)),
	                    "ALL");
	assert_null(json_object_get(host, "CapAdd"));
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(host, "SecurityOpt"), 0)),
		"no-new-privileges");
	assert_true(json_is_true(json_object_get(host, "ReadonlyRootfs")));
	assert_true(json_is_false(json_object_get(host, "Privileged")));
	assert_true(json_is_false(json_object_get(host, "Init")));
	assert_true(json_is_true(json_object_get(host, "AutoRemove")));
	assert_string_equal(text_at(log, "Type"), "none");
	assert_string_equal(text_at(host, "IpcMode"), "private");
	assert_null(json_object_get(host, "Runtime"));
	assert_int_equal(json_array_size(json_object_get(config, "Env")), 0);
	json_decref(config);
}

static json_int_t number_at(const json_t *config, const char *name)
{
	return json_integer_value(json_object_get(json_object_get(config, "HostConfig"), name));
}

static void limits_are_those_of_the_request(void **state)
{
	struct docker_plan plan = plan_of();
	json_t *config = docker_config(&plan);
	const json_t *areas = json_object_get(json_object_get(config, "HostConfig"), "Tmpfs");

	(void)state;
	assert_int_equal(number_at(config, "Memory"), MIB_OF(100));
	assert_int_equal(number_at(config, "MemorySwap"), MIB_OF(100));
	assert_int_equal(number_at(config, "PidsLimit"), 20);
	assert_int_equal(number_at(config, "NanoCpus"), 1500000000);
	assert_int_equal(number_at(config, "ShmSize"), MIB_OF(3));
	assert_string_equal(text_at(areas, "/workspace"),
	                    "rw,nosuid,nodev,exec,size=10485760,nr_inodes=77,mode=755,uid=300007,"
	                    "gid=300007");
	assert_non_null(strstr(text_at(areas, "/tmp"), "nodev,noexec,size=5242880,nr_inodes=33"));
	assert_int_equal(json_object_size(areas), 3);
	json_decref(config);
	/* More than the server has is refused by it, and bounds nothing. */
	plan.cpus = 1;
	plan.flags = ENGINE_FLAG_EXEC_TMP;
	config = docker_config(&plan);
	areas = json_object_get(json_object_get(config, "HostConfig"), "Tmpfs");
	assert_int_equal(number_at(config, "NanoCpus"), 1000000000);
	assert_non_null(strstr(text_at(areas, "/tmp"), "nodev,exec,"));
	json_decref(config);
}

static void a_runtime_with_processes_of_its_own_has_room_for_them(void **state)
{
	struct docker_plan plan = plan_of();
	json_t *config;

	(void)state;
	plan.runtime = "runsc";
	plan.own_pids = 256;
	plan.own_memory = MIB_OF(64);
	config = docker_config(&plan);
	assert_int_equal(number_at(config, "PidsLimit"), 276);
	assert_int_equal(number_at(config, "Memory"), MIB_OF(164));
	assert_int_equal(number_at(config, "MemorySwap"), MIB_OF(164));
	assert_string_equal(text_at(json_object_get(config, "HostConfig"), "Runtime"), "runsc");
	json_decref(config);
}

static void mounts_are_read_only_and_without_what_is_beneath(void **state)
{
	char one[] = "/a", to_one[] = "/b", two[] = "/usr";
	const struct docker_mount mounts[] = {{one, to_one}}, more[] = {{two, two}};
	struct docker_plan plan = plan_of();
	json_t *config;
	const json_t *list, *mount;
	size_t i;

	(void)state;
	plan.mounts = mounts;
	plan.more_mounts = more;
	plan.mounts_count = plan.more_mounts_count = 1;
	plan.packages = "/roots/layer";
	config = docker_config(&plan);
	list = json_object_get(json_object_get(config, "HostConfig"), "Mounts");
	assert_int_equal(json_array_size(list), 3);
	json_array_foreach (list, i, mount) {
		const json_t *options = json_object_get(mount, "BindOptions");

		assert_true(json_is_true(json_object_get(mount, "ReadOnly")));
		assert_true(json_is_true(json_object_get(options, "NonRecursive")));
		assert_string_equal(text_at(options, "Propagation"), "rprivate");
	}
	assert_string_equal(text_at(json_array_get(list, 2), "Target"), "/opt/millibox/packages");
	json_decref(config);
}

static void the_agent_knows_whose_root_it_is(void **state)
{
	struct docker_plan plan = plan_of();
	json_t *config = docker_config(&plan);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(config, "Entrypoint")), 4);
	json_decref(config);
	plan.is_host = true;
	plan.lacks = 32768;
	config = docker_config(&plan);
	assert_int_equal(json_array_size(json_object_get(config, "Entrypoint")), 3);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(config, "Entrypoint"), 2)),
		"lacks=32768");
	json_decref(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left_to_the_servers_defaults),
		cmocka_unit_test(limits_are_those_of_the_request),
		cmocka_unit_test(a_runtime_with_processes_of_its_own_has_room_for_them),
		cmocka_unit_test(mounts_are_read_only_and_without_what_is_beneath),
		cmocka_unit_test(the_agent_knows_whose_root_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
