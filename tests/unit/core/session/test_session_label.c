/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/attr.h"
#include "core/session/session_reattach.h"

#define ID "exec_20261115_ab12cd34"

static const struct session_label sample = {
	.id = ID,
	.queue_us = 500,
	.before = {.cpu_us = 3000000, .oom_kills = 0, .pids_denied = COUNTER_UNKNOWN},
};

static void label_survives_the_round_trip(void **state)
{
	struct session_label back;
	char text[BOX_LABEL_MAX + 1];

	(void)state;
	session_label_make(&sample, text);
	assert_string_equal(text, ID " 1f4 2dc6c0 0 -");
	session_label_read(text, &back);
	assert_string_equal(back.id, ID);
	assert_int_equal(back.queue_us, 500);
	assert_int_equal(back.before.cpu_us, 3000000);
	assert_int_equal(back.before.oom_kills, 0);
	assert_true(back.before.pids_denied == COUNTER_UNKNOWN);
	assert_true(back.before.memory_bytes == COUNTER_UNKNOWN);
}

/* Hours in the queue and years of CPU time fit. What does not fit is dropped, never the id. */
static void id_is_never_cut(void **state)
{
	struct session_label label = sample, back;
	char text[BOX_LABEL_MAX + 1];

	(void)state;
	label.queue_us = 24ULL * 3600 * 1000000;
	label.before.cpu_us = 365ULL * 24 * 3600 * 1000000;
	label.before.oom_kills = label.before.pids_denied = 999999;
	session_label_make(&label, text);
	session_label_read(text, &back);
	assert_int_equal(back.queue_us, label.queue_us);
	assert_int_equal(back.before.cpu_us, label.before.cpu_us);
	assert_int_equal(back.before.pids_denied, 999999);

	label.before.oom_kills = label.before.pids_denied = UINT64_MAX - 1;
	session_label_make(&label, text);
	assert_string_equal(text, ID);
	memset(label.id, 'x', BOX_LABEL_MAX);
	session_label_make(&label, text);
	assert_string_equal(text, label.id);
}

/* Labels of a hostile agent. */
static void nonsense_is_unknown(void **state)
{
	static const char *const texts[] = {
		"x",
		"x ",
		"x - - - -",
		"x g 1z -1 +1",
		"x 0x1 A,",
		"x    ?  - ?",
		"x 00000000000000000 11111111111111111",
	};
	struct session_label back;
	char longest[BOX_LABEL_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		session_label_read(texts[i], &back);
		assert_string_equal(back.id, "x");
		assert_true(back.queue_us == COUNTER_UNKNOWN);
		assert_true(back.before.cpu_us == COUNTER_UNKNOWN);
		assert_true(back.before.oom_kills == COUNTER_UNKNOWN);
		assert_true(back.before.pids_denied == COUNTER_UNKNOWN);
	}
	session_label_read("", &back);
	assert_string_equal(back.id, "");
	memset(longest, 'y', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	session_label_read(longest, &back);
	assert_int_equal(strlen(back.id), BOX_LABEL_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(label_survives_the_round_trip),
		cmocka_unit_test(id_is_never_cut),
		cmocka_unit_test(nonsense_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
