/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>

#include "base/alloc.h"
#include "engine/internal.h"

static struct slots *new_slots(uint32_t count)
{
	struct slots *slots = NEW(struct slots);

	slots_init(slots, count);
	return slots;
}

static void no_slot_is_given_twice(void **state)
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

static void giving_back_what_was_not_taken_is_a_bug(void **state)
{
	cleanup_free struct slots *slots = new_slots(4);

	(void)state;
	assert_true(unit_aborts(put_free_slot, slots));
}

static const struct privilege root = {
	.mode = ENGINE_IDS_RANGE,
	.first = 1000000,
	.host_first = 1000000,
	.count = 10 * 65536,
	.stride = 65536,
};

static void instances_and_boxes_and_the_daemon_never_share_an_id(void **state)
{
	struct ids zero = ids_of_instance(&root, 0), one = ids_of_instance(&root, 1);
	uint32_t last = ids_slots(&zero) - 1;

	(void)state;
	assert_int_equal(ids_agent(&zero, 0), 1000000);
	assert_int_equal(ids_payload(&zero, 0), 1000001);
	assert_int_equal(ids_agent(&zero, 1), 1000002);
	assert_true(ids_payload(&zero, last) < zero.daemon_uid);
	assert_int_equal(zero.daemon_uid, 1000000 + 65535);
	assert_true(zero.daemon_uid < ids_agent(&one, 0));
}

static void a_small_range_gives_as_many_slots_as_it_has_pairs(void **state)
{
	struct privilege small = {.mode = ENGINE_IDS_SUBID, .first = 1, .host_first = 100000};
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
	struct privilege user = {.mode = ENGINE_IDS_SINGLE, .host_first = 1234};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_slot_is_given_twice),
		cmocka_unit_test(a_slot_rests_as_long_as_there_are_others),
		cmocka_unit_test(giving_back_what_was_not_taken_is_a_bug),
		cmocka_unit_test(instances_and_boxes_and_the_daemon_never_share_an_id),
		cmocka_unit_test(a_small_range_gives_as_many_slots_as_it_has_pairs),
		cmocka_unit_test(with_a_single_id_all_boxes_have_it),
		cmocka_unit_test(subordinate_ids_are_found_by_name_or_number),
		cmocka_unit_test(broken_lines_of_subordinate_ids_grant_nothing),
		cmocka_unit_test(a_map_covers_what_lies_in_one_extent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
