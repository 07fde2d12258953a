/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/attr.h"
#include "core/run/artifacts.h"

/* A box that records requests and answers as the test wants. */

static struct box_file_events events; /* of the running scan */
static int cancelled;

int box_file_open(struct box *box, const struct box_file_request *request,
                  const struct box_file_events *given, struct box_file **ret_file,
                  struct error *err)
{
	(void)box;
	(void)err;
	assert_int_equal(request->op, BOX_FILE_CHANGES);
	events = *given;
	*ret_file = (struct box_file *)&events;
	return 0;
}

void box_file_cancel(struct box_file *file)
{
	assert_ptr_equal(file, &events);
	cancelled++;
}

static void on_over(void *ctx)
{
	++*(int *)ctx;
}

/* One scan, which finds the file "f" with this time and content (NULL: not hashed). */
static size_t look(struct artifacts *seen, uint64_t ctime_ns, const char *content)
{
	struct artifacts found = {0};
	int overs = 0;
	uint8_t digest[BOX_SHA256_LEN] = {0};
	struct gather g = {.into = &found, .seen = seen, .on_over = on_over, .ctx = &overs};
	const struct box_file_entry entry = {.path = "f",
	                                     .size = 1,
	                                     .ctime_ns = ctime_ns,
	                                     .inode = 7,
	                                     .target = "",
	                                     .sha256 = content ? digest : NULL};
	size_t count;

	memcpy(digest, content ? content : "", content ? strlen(content) : 0);
	assert_true(gather_start(&g, NULL, 1));
	events.on_entry(events.ctx, &entry);
	events.on_done(events.ctx, &(struct box_file_summary){0});
	assert_int_equal(overs, 1);
	assert_false(found.truncated);
	count = found.count;
	artifacts_done(&found);
	return count;
}

static void known_changes_are_not_reported_again(void **state)
{
	struct artifacts seen = {0};

	(void)state;
	assert_int_equal(look(&seen, 10, "a"), 1);
	assert_int_equal(look(&seen, 10, "a"), 0);
	assert_int_equal(look(&seen, 11, "a"), 1);
	artifacts_done(&seen);
}

static void a_change_within_one_tick_is_found(void **state)
{
	struct artifacts seen = {0};

	(void)state;
	assert_int_equal(look(&seen, 10, "a"), 1);
	assert_int_equal(look(&seen, 10, "b"), 1);
	assert_int_equal(look(&seen, 10, "b"), 0);
	artifacts_done(&seen);
}

static void unhashed_files_are_compared_by_times(void **state)
{
	struct artifacts seen = {0};

	(void)state;
	assert_int_equal(look(&seen, 10, NULL), 1);
	assert_int_equal(look(&seen, 10, NULL), 0);
	assert_int_equal(look(&seen, 11, NULL), 1);
	artifacts_done(&seen);
}

/* Digest of "abc", from the standard. */
static const uint8_t abc[BOX_SHA256_LEN] = {
	0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
	0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
	0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
};

/* One scan from 1 s on, after "f" was given as "abc". Return: whether @entry is reported. */
static bool is_reported(struct given_files *given, const struct box_file_entry *entry)
{
	struct artifacts found = {0};
	int overs = 0;
	struct gather g = {.into = &found, .given = given, .on_over = on_over, .ctx = &overs};
	bool is_told;

	assert_true(gather_start(&g, NULL, 1000000000));
	events.on_entry(events.ctx, entry);
	events.on_done(events.ctx, &(struct box_file_summary){0});
	is_told = found.count > 0;
	artifacts_done(&found);
	return is_told;
}

static void request_files_are_compared_by_content(void **state)
{
	struct given_files given = {.budget = 3};
	struct box_file_entry entry = {
		.path = "f", .size = 3, .ctime_ns = 1000000000, .target = "", .sha256 = abc};
	uint8_t other[BOX_SHA256_LEN] = {0};

	(void)state;
	given_add(&given, "e", "", 0);
	given_add(&given, "f", "abc", 3);
	assert_false(is_reported(&given, &entry));
	entry.ctime_ns += 60000000000; /* rewritten with the same content: no change */
	assert_false(is_reported(&given, &entry));
	entry.ctime_ns = 1000000000; /* changed in the tick in which it was given */
	entry.sha256 = other;
	assert_true(is_reported(&given, &entry));
	entry.sha256 = abc;
	entry.path = "g";
	assert_true(is_reported(&given, &entry));
	given_done(&given);
	assert_int_equal(given.count, 0);
}

static void unhashed_request_files_are_compared_by_time(void **state)
{
	struct given_files given = {.budget = 2};
	struct box_file_entry entry = {
		.path = "f", .size = 3, .ctime_ns = 1000000000, .target = "", .sha256 = abc};

	(void)state;
	given_add(&given, "f", "abc", 3);
	assert_false(is_reported(&given, &entry));
	entry.ctime_ns += 60000000000;
	assert_true(is_reported(&given, &entry));
	entry.ctime_ns = 1000000000;
	entry.size = 4;
	assert_true(is_reported(&given, &entry));
	given_done(&given);
}

static void a_scan_that_takes_too_long_is_marked_incomplete(void **state)
{
	struct artifacts found = {0}, seen = {0};
	int overs = 0;
	struct gather g = {.into = &found, .seen = &seen, .on_over = on_over, .ctx = &overs};

	(void)state;
	cancelled = 0;
	assert_true(gather_start(&g, NULL, 1));
	gather_cancel(&g);
	gather_cancel(&g);
	assert_int_equal(cancelled, 1);
	assert_int_equal(overs, 0);
	assert_true(found.truncated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_changes_are_not_reported_again),
		cmocka_unit_test(a_change_within_one_tick_is_found),
		cmocka_unit_test(unhashed_files_are_compared_by_times),
		cmocka_unit_test(request_files_are_compared_by_content),
		cmocka_unit_test(unhashed_request_files_are_compared_by_time),
		cmocka_unit_test(a_scan_that_takes_too_long_is_marked_incomplete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
