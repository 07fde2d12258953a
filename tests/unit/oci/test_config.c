/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <jansson.h>
#include <string.h>

#include "oci/runtimes.h"
#include "oci/spec.h"

static const char *const agent[] = {SPEC_AGENT_PATH, "keep", "container", NULL};
static const struct proc_mask masks[] = {
	{"kcore", "/mask/file"},
	{"fs", "/mask/dir"},
	{"sys/kernel/random/boot_id", "../" PROC_BOOT_ID},
};
static const struct spec spec = {.agent = agent, .masks = masks, .mask_count = ARRAY_SIZE(masks)};

static json_t *config(void)
{
	cleanup_buf struct buf text = BUF_INIT(SPEC_MAX);
	json_t *value;

	assert_int_equal(spec_write_config(&spec, &text), 0);
	value = json_loadb(text.data, text.len, 0, NULL);
	assert_non_null(value);
	return value;
}

static bool has_string(const json_t *list, const char *wanted)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (strcmp(json_string_value(item), wanted) == 0)
			return true;
	return false;
}

static const json_t *at(const json_t *value, const char *first, const char *second)
{
	return json_object_get(json_object_get(value, first), second);
}

static void the_agent_is_the_first_process_with_four_capabilities(void **state)
{
	static const char *const sets[] = {"bounding", "effective", "permitted", "inheritable",
	                                   "ambient"};
	json_t *value = config();
	const json_t *args = at(value, "process", "args");
	const json_t *caps = at(value, "process", "capabilities");

	(void)state;
	assert_int_equal(json_array_size(args), 3);
	assert_string_equal(json_string_value(json_array_get(args, 0)), SPEC_AGENT_PATH);
	assert_true(json_is_true(at(value, "process", "noNewPrivileges")));
	assert_int_equal(json_array_size(at(value, "process", "env")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		const json_t *set = json_object_get(caps, sets[i]);

		assert_int_equal(json_array_size(set), 4);
		assert_true(has_string(set, "CAP_SETUID") && has_string(set, "CAP_SETGID"));
		assert_true(has_string(set, "CAP_KILL") && has_string(set, "CAP_SETPCAP"));
	}
	json_decref(value);
}

/* They exist already: a new network would be another one than the egress proxy listens in, and new
 * groups would have no limits. */
static void no_network_user_or_cgroup_is_made(void **state)
{
	static const char *const made[] = {"pid", "mount", "ipc", "uts"};
	json_t *value = config();
	const json_t *kinds = at(value, "linux", "namespaces");

	(void)state;
	assert_int_equal(json_array_size(kinds), ARRAY_SIZE(made));
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		assert_string_equal(
			json_string_value(json_object_get(json_array_get(kinds, i), "type")),
			made[i]);
	assert_null(at(value, "linux", "cgroupsPath"));
	assert_null(at(value, "linux", "resources"));
	assert_null(json_object_get(value, "hooks"));
	json_decref(value);
}

static void names_of_proc_are_masked_and_it_is_read_only(void **state)
{
	json_t *value = config();
	const json_t *masked = at(value, "linux", "maskedPaths");
	const json_t *proc = json_array_get(json_object_get(value, "mounts"), 0);

	(void)state;
	assert_int_equal(json_array_size(masked), ARRAY_SIZE(masks));
	assert_true(has_string(masked, "/proc/kcore") && has_string(masked, "/proc/fs"));
	assert_true(has_string(masked, "/proc/sys/kernel/random/boot_id"));
	assert_string_equal(json_string_value(json_object_get(proc, "destination")), "/proc");
	assert_true(has_string(json_object_get(proc, "options"), "ro"));
	assert_true(has_string(json_object_get(proc, "options"), "hidepid=invisible"));
	json_decref(value);
}

/* The words of bwrap, by number. */
static const char *word_at(const struct buf *text, size_t n)
{
	const char *at = text->data;

	while (n-- > 0 && at < text->data + text->len)
		at += strlen(at) + 1;
	return at < text->data + text->len ? at : NULL;
}

static size_t find_word(const struct buf *text, const char *wanted)
{
	size_t n = 0;
	const char *word;

	while ((word = word_at(text, n)) && strcmp(word, wanted) != 0)
		n++;
	assert_non_null(word);
	return n;
}

static void bwrap_is_told_the_same(void **state)
{
	cleanup_buf struct buf text = BUF_INIT(SPEC_MAX);
	size_t proc, mask, own, locked;

	(void)state;
	assert_int_equal(spec_write_arguments(&spec, &text), 0);
	assert_int_equal(text.data[text.len - 1], '\0');
	assert_string_equal(word_at(&text, find_word(&text, "--cap-drop") + 1), "ALL");
	assert_string_equal(word_at(&text, find_word(&text, "--dev-bind") + 1), PLACE_ROOT);
	(void)find_word(&text, "--unshare-pid");
	(void)find_word(&text, "--as-pid-1");
	(void)find_word(&text, "--clearenv");
	proc = find_word(&text, "--proc");
	mask = find_word(&text, "/proc/kcore");
	own = find_word(&text, "/proc/sys/kernel/random/boot_id");
	locked = find_word(&text, "--remount-ro");
	assert_true(find_word(&text, "--dev-bind") < proc && proc < mask && mask < locked);
	assert_string_equal(word_at(&text, mask - 1), "/mask/file");
	assert_string_equal(word_at(&text, own - 1), PLACE_ROOT "/" PROC_BOOT_ID);
}

static void a_single_id_becomes_the_payloads_in_a_user_namespace(void **state)
{
	const struct spec single = {.agent = agent, .is_single = true};
	cleanup_buf struct buf text = BUF_INIT(SPEC_MAX), words = BUF_INIT(SPEC_MAX);
	json_t *value;
	const json_t *map;

	(void)state;
	assert_int_equal(spec_write_config(&single, &text), 0);
	value = json_loadb(text.data, text.len, 0, NULL);
	map = json_array_get(at(value, "linux", "uidMappings"), 0);
	assert_int_equal(json_integer_value(json_object_get(map, "containerID")), BOX_PAYLOAD_ID);
	assert_int_equal(json_integer_value(json_object_get(map, "hostID")), 0);
	assert_int_equal(json_array_size(at(value, "linux", "namespaces")), 5);
	json_decref(value);
	assert_int_equal(spec_write_arguments(&single, &words), 0);
	assert_string_equal(word_at(&words, find_word(&words, "--uid") + 1), "1000");
}

/* gVisor would put its own file systems there, without a limit. */
static void writable_places_of_a_guest_kernel_are_those_of_the_box(void **state)
{
	const struct spec guest = {.agent = agent, .is_guest = true};
	cleanup_buf struct buf text = BUF_INIT(SPEC_MAX);
	json_t *value;
	const json_t *mounts;

	(void)state;
	assert_int_equal(spec_write_config(&guest, &text), 0);
	value = json_loadb(text.data, text.len, 0, NULL);
	mounts = json_object_get(value, "mounts");
	assert_int_equal(json_array_size(mounts), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(mounts, 1), "source")),
	                    PLACE_ROOT "/tmp");
	assert_string_equal(json_string_value(json_object_get(json_array_get(mounts, 2), "source")),
	                    PLACE_ROOT "/dev/shm");
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_agent_is_the_first_process_with_four_capabilities),
		cmocka_unit_test(no_network_user_or_cgroup_is_made),
		cmocka_unit_test(names_of_proc_are_masked_and_it_is_read_only),
		cmocka_unit_test(bwrap_is_told_the_same),
		cmocka_unit_test(a_single_id_becomes_the_payloads_in_a_user_namespace),
		cmocka_unit_test(writable_places_of_a_guest_kernel_are_those_of_the_box),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
