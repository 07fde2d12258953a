/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "engine/internal.h"

static struct slots *new_slots(uint32_t count)
{
	struct slots *slots = NEW(struct slots);

	slots_init(slots, count);
	return slots;
}

static void no_slot_is_used_twice(void **state)
{
	cleanup_free struct slots *slots = new_slots(5);
	bool seen[5] = {false};

	(void)state;
	for (int i = 0; i < 5; i++) {
		int slot = slots_take(slots);

		assert_in_range(slot, 0, 4);
		assert_false(seen[slot]);
		seen[slot] = true;
	}
	assert_int_equal(slots_take(slots), -EBUSY);
	slots_put(slots, 3);
	assert_int_equal(slots_take(slots), 3);
	assert_int_equal(slots_take(slots), -EBUSY);
}

static void a_slot_rests_as_long_as_there_are_others(void **state)
{
	cleanup_free struct slots *slots = new_slots(4);
	int first = slots_take(slots);

	(void)state;
	slots_put(slots, (uint32_t)first);
	for (int i = 0; i < 3; i++)
		assert_int_not_equal(slots_take(slots), first);
	assert_int_equal(slots_take(slots), first);
}

static void put_free_slot(void *arg)
{
	slots_put(arg, 1);
}

static void releasing_more_than_taken_is_a_bug(void **state)
{
	cleanup_free struct slots *slots = new_slots(4);

	(void)state;
	assert_true(unit_aborts(put_free_slot, slots));
}

static const struct privilege root = {
	.mode = ENGINE_IDS_RANGE,
	.host_uid = 1000000,
	.host_gid = 1000000,
	.count = 10 * 65536,
	.stride = 65536,
};

static uint32_t on_host(const struct ids *ids, uint32_t id)
{
	return ids->host_first + (id - ids->first);
}

static void instances_and_boxes_and_the_daemon_never_share_an_id(void **state)
{
	struct ids zero = ids_of_instance(&root, 0), one = ids_of_instance(&root, 1);
	uint32_t last = on_host(&zero, ids_payload(&zero, ids_slots(&zero) - 1));

	(void)state;
	assert_int_equal(zero.host_root, 1000000);
	assert_int_equal(ids_agent(&zero, 0), 1);
	assert_int_equal(on_host(&zero, ids_agent(&zero, 0)), 1000001);
	assert_int_equal(on_host(&zero, ids_payload(&zero, 0)), 1000002);
	assert_int_equal(on_host(&zero, ids_agent(&zero, 1)), 1000003);
	/* Between them is the owner of imported files. */
	assert_true(last + IDS_RESERVED < zero.daemon_uid);
	assert_int_equal(zero.host_first + zero.count + IDS_RESERVED, zero.daemon_uid);
	assert_int_equal(zero.daemon_uid, 1000000 + 65535);
	assert_true(zero.daemon_uid < one.host_root);
}

static void a_small_range_gives_as_many_slots_as_it_has_pairs(void **state)
{
	struct privilege small = {.mode = ENGINE_IDS_SUBID, .host_uid = 100000};
	struct ids ids;

	(void)state;
	small.count = small.stride = 17;
	ids = ids_of_instance(&small, 0);
	assert_int_equal(ids_slots(&ids), 8);
	assert_int_equal(ids_payload(&ids, 7), 16);
	assert_int_equal(ids.daemon_uid, 0);
}

static void with_a_single_id_all_boxes_have_it(void **state)
{
	struct privilege user = {.mode = ENGINE_IDS_SINGLE, .host_uid = 1234};
	struct ids ids = ids_of_instance(&user, 3);

	(void)state;
	assert_int_equal(ids_agent(&ids, 0), ids_payload(&ids, 7));
	assert_int_equal(ids.host_first, 1234);
	assert_int_equal(ids_slots(&ids), BOXES_MAX);
}

static void subordinate_ids_are_found_by_name_or_number(void **state)
{
	static const char text[] = "alice:100000:65536\n"
				   "bob:165536:65536\n"
				   "1003:300000:10\n";
	uint64_t first = 0, count = 0;

	(void)state;
	assert_int_equal(subid_find(text, "bob", 1001, &first, &count), 0);
	assert_int_equal(first, 165536);
	assert_int_equal(count, 65536);
	assert_int_equal(subid_find(text, "carol", 1003, &first, &count), 0);
	assert_int_equal(first, 300000);
	assert_int_equal(subid_find(text, "bo", 1, &first, &count), -ENOENT);
	assert_int_equal(subid_find(text, "", 1, &first, &count), -ENOENT);
}

static void broken_lines_of_subordinate_ids_grant_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"u",
		"u:",
		"u:5",
		"u:x:10",
		"u:5:",
		"u:5:x",
		"u:0:10",
		"u:5:0",
		"u:-5:10",
		":5:10",
		"u:5:4294967295",
		"u:4294967296:1",
		"u : 5 : 10",
	};
	uint64_t first = 77, count = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(subid_find(texts[i], "u", 1000, &first, &count), -ENOENT);
	assert_int_equal(first, 77);
	assert_int_equal(count, 77);
}

static void a_map_covers_what_lies_in_one_extent(void **state)
{
	static const char host[] = "         0          0 4294967295\n";
	static const char nested[] = "         0       1000          1\n"
				     "         1     100000      65536\n";

	(void)state;
	assert_true(idmap_covers(host, 1879048192, 65536));
	assert_true(idmap_covers(nested, 1, 65536));
	assert_false(idmap_covers(nested, 1, 65537));
	assert_false(idmap_covers(nested, 0, 2));
	assert_false(idmap_covers(nested, 65537, 1));
	assert_false(idmap_covers("", 0, 1));
	assert_false(idmap_covers("0 0", 0, 1));
}

static void a_container_uses_the_upper_half_of_its_ids(void **state)
{
	static const char nested[] = "0 1000 1\n1 100000 65536\n";
	uint64_t first = 0, count = 0;

	(void)state;
	assert_int_equal(idmap_upper_half(nested, 4096, &first, &count), 0);
	assert_int_equal(first, 1 + 32768);
	assert_int_equal(count, 32768);
	assert_int_equal(idmap_upper_half("0 1000 8191\n", 4096, &first, &count), 0);
	assert_int_equal(count, 4096);
	assert_int_equal(idmap_upper_half("0 1000 8190\n", 4096, &first, &count), -ENOENT);
	assert_int_equal(idmap_upper_half("0 0 4294967296\n", 1, &first, &count), -ENOENT);
	assert_int_equal(idmap_upper_half("", 1, &first, &count), -ENOENT);
}

struct runtime {
	char path[64];
	struct privilege privilege;
	struct cgroups groups;
	struct instance instance;
	struct error err;
};

static int claim(struct runtime *rt, const char *path)
{
	rt->privilege = (struct privilege){.mode = ENGINE_IDS_SINGLE};
	rt->groups = (struct cgroups){0};
	rt->err = (struct error){0};
	return instance_claim(path, &rt->privilege, &rt->groups, &rt->instance, &rt->err);
}

static void make_runtime(struct runtime *rt)
{
	(void)snprintf(rt->path, sizeof(rt->path), "/tmp/mbxinstance-XXXXXX");
	assert_non_null(mkdtemp(rt->path));
}

static void assert_refused(struct runtime *rt, const char *path)
{
	assert_int_equal(claim(rt, path), -1);
	assert_int_equal(rt->err.code, ERR_CONFIG);
	assert_non_null(strstr(rt->err.msg, path));
}

static void locks_are_taken_in_a_directory_of_our_own(void **state)
{
	struct runtime rt, second;

	(void)state;
	make_runtime(&rt);
	assert_int_equal(claim(&rt, rt.path), 0);
	assert_int_equal(claim(&second, rt.path), 0);
	assert_int_equal(rt.instance.number, 0);
	assert_int_equal(second.instance.number, 1);
	instance_release(&second.instance);
	instance_release(&rt.instance);
	assert_int_equal(rmdir(rt.path), 0); /* and it is empty again */
}

static void a_lock_with_another_name_is_refused(void **state)
{
	char lock[96], other[96];
	struct runtime rt;
	int fd;

	(void)state;
	make_runtime(&rt);
	(void)snprintf(lock, sizeof(lock), "%s/engine-0.lock", rt.path);
	(void)snprintf(other, sizeof(other), "%s/other", rt.path);
	fd = fd_open(other, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	(void)fd_close(fd);
	assert_int_equal(link(other, lock), 0);
	assert_int_equal(claim(&rt, rt.path), -1);
	assert_non_null(strstr(rt.err.msg, rt.path));
	assert_int_equal(unlink(other), 0);
	/* With one name it is a lock like any other. */
	assert_int_equal(claim(&rt, rt.path), 0);
	instance_release(&rt.instance);
	assert_int_equal(rmdir(rt.path), 0);
}

static void a_directory_that_others_can_write_to_holds_no_locks(void **state)
{
	static const mode_t modes[] = {0775, 0757, 01777};
	struct runtime rt;

	(void)state;
	make_runtime(&rt);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod(rt.path, modes[i]), 0);
		assert_refused(&rt, rt.path);
	}
	assert_int_equal(rmdir(rt.path), 0);
}

static void a_directory_of_another_user_holds_no_locks(void **state)
{
	struct runtime rt;

	(void)state;
	if (geteuid() != 0) /* only root can chown a directory; others use an existing one */
		(void)snprintf(rt.path, sizeof(rt.path), "/usr");
	else
		make_runtime(&rt);
	if (geteuid() == 0)
		assert_int_equal(chown(rt.path, 12345, 12345), 0);
	assert_refused(&rt, rt.path);
	if (geteuid() == 0)
		assert_int_equal(rmdir(rt.path), 0);
}

static void a_link_is_not_followed_to_a_directory(void **state)
{
	char link[96];
	struct runtime rt;

	(void)state;
	make_runtime(&rt);
	(void)snprintf(link, sizeof(link), "%s.link", rt.path);
	assert_int_equal(symlink(rt.path, link), 0);
	assert_refused(&rt, link);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(rt.path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_slot_is_used_twice),
		cmocka_unit_test(a_slot_rests_as_long_as_there_are_others),
		cmocka_unit_test(releasing_more_than_taken_is_a_bug),
		cmocka_unit_test(instances_and_boxes_and_the_daemon_never_share_an_id),
		cmocka_unit_test(a_small_range_gives_as_many_slots_as_it_has_pairs),
		cmocka_unit_test(with_a_single_id_all_boxes_have_it),
		cmocka_unit_test(subordinate_ids_are_found_by_name_or_number),
		cmocka_unit_test(broken_lines_of_subordinate_ids_grant_nothing),
		cmocka_unit_test(a_map_covers_what_lies_in_one_extent),
		cmocka_unit_test(a_container_uses_the_upper_half_of_its_ids),
		cmocka_unit_test(locks_are_taken_in_a_directory_of_our_own),
		cmocka_unit_test(a_lock_with_another_name_is_refused),
		cmocka_unit_test(a_directory_that_others_can_write_to_holds_no_locks),
		cmocka_unit_test(a_directory_of_another_user_holds_no_locks),
		cmocka_unit_test(a_link_is_not_followed_to_a_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
