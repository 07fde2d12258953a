/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include "driver/box_spec.h"
#include "wire/layer.h"

static void assert_refused(const struct box_spec *spec, const char *field)
{
	struct error err = {0};

	assert_int_equal(box_spec_check(spec, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.field, field);
}

static void a_valid_spec_is_accepted(void **state)
{
	struct box_spec spec = sample_spec("a0z9");
	struct error err = {0};

	(void)state;
	spec.required_layers = LAYERS_ALL;
	assert_int_equal(box_spec_check(&spec, &err), 0);
}

static void ids_are_short_and_plain(void **state)
{
	static const char *const bad[] = {"", "A", "a-b", "a/b", "..", "a b", "\xc3\xa4"};
	struct box_spec spec;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		spec = sample_spec(bad[i]);
		assert_refused(&spec, "id");
	}
	memset(spec.id, 'a', sizeof(spec.id)); /* unterminated */
	assert_refused(&spec, "id");
}

static void limits_have_two_ends(void **state)
{
	struct box_spec spec = sample_spec("a");

	(void)state;
#define BOTH_ENDS(name, below, above)                                                              \
	do {                                                                                       \
		spec.limits.name = below;                                                          \
		assert_refused(&spec, "limits." #name);                                            \
		spec.limits.name = above;                                                          \
		assert_refused(&spec, "limits." #name);                                            \
		spec.limits.name = sample_spec("a").limits.name;                                   \
	} while (0)
	BOTH_ENDS(memory_bytes, 0, UINT64_MAX);
	BOTH_ENDS(workspace_bytes, 0, UINT64_MAX);
	BOTH_ENDS(tmp_bytes, 4096, UINT64_MAX);
	BOTH_ENDS(shm_bytes, 0, UINT64_MAX);
	BOTH_ENDS(workspace_inodes, 0, UINT32_MAX);
	BOTH_ENDS(tmp_inodes, 1, UINT32_MAX);
	BOTH_ENDS(pids, 1, UINT32_MAX);
	BOTH_ENDS(cpu_millicores, 0, UINT32_MAX);
	BOTH_ENDS(nofile, 0, UINT32_MAX);
}

static void unknown_layers_cannot_be_required(void **state)
{
	struct box_spec spec = sample_spec("a");

	(void)state;
	spec.required_layers = LAYER_BIT(LAYER_COUNT);
	assert_refused(&spec, "required_layers");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_valid_spec_is_accepted),
		cmocka_unit_test(ids_are_short_and_plain),
		cmocka_unit_test(limits_have_two_ends),
		cmocka_unit_test(unknown_layers_cannot_be_required),
	};

	return cmocka_run_group_tests_name("driver/box_spec", tests, NULL, NULL);
}
