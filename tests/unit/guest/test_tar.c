/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "guest/tar.h"
#include <errno.h>
#include <string.h>

static struct tar_entry entry, back;
static uint8_t blocks[TAR_HEADERS_MAX];

static void fill(enum tar_kind kind, size_t name, size_t link, uint64_t size)
{
	memset(&entry, 0, sizeof(entry));
	memset(&back, 0, sizeof(back));
	entry.kind = kind;
	entry.mode = 0751;
	entry.mtime = 1234567890;
	entry.size = size;
	memset(entry.name, 'n', name);
	memset(entry.link, 'l', link);
}

/* What was written is read again, through a pax header if there is one. */
static void check_trip(void)
{
	size_t len = tar_write(&entry, blocks), at = 0;

	assert_true(len > 0 && len % TAR_BLOCK == 0);
	assert_int_equal(tar_read(blocks, &back), 0);
	if (back.kind == TAR_PAX) {
		uint64_t size = back.size;

		at = TAR_BLOCK + (size_t)size + tar_padding(size);
		assert_int_equal(tar_read(blocks + at, &back), 0);
		assert_int_equal(tar_read_pax((char *)blocks + TAR_BLOCK, (size_t)size, &back), 0);
	}
	assert_int_equal(len, at + TAR_BLOCK);
	assert_int_equal(back.kind, entry.kind);
	assert_int_equal(back.mode, entry.mode);
	assert_int_equal(back.mtime, entry.mtime);
	assert_true(back.size == entry.size);
	assert_string_equal(back.name, entry.name);
	assert_string_equal(back.link, entry.link);
}

static void written_headers_are_read(void **state)
{
	static const size_t lengths[] = {1, 99, 100, 101, 255, 1000, TAR_NAME_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		fill(TAR_FILE, lengths[i], 0, 8);
		check_trip();
		fill(TAR_SYMLINK, 5, lengths[i], 0);
		check_trip();
		fill(TAR_HARDLINK, lengths[i], lengths[i], 0);
		check_trip();
	}
	fill(TAR_DIR, 10, 0, 0);
	check_trip();
	fill(TAR_FILE, 10, 0, 077777777777ULL);
	check_trip();
	fill(TAR_FILE, 10, 0, 077777777777ULL + 1);
	check_trip();
}

static void a_header_with_a_wrong_checksum_is_invalid(void **state)
{
	(void)state;
	fill(TAR_FILE, 10, 0, 8);
	(void)tar_write(&entry, blocks);
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		blocks[i] ^= 1;
		/* The sum's own blanks may change without changing the number. */
		if (tar_read(blocks, &back) == 0)
			assert_in_range(i, 148, 155);
		blocks[i] ^= 1;
	}
	assert_int_equal(tar_read(blocks, &back), 0);
}

static void the_end_is_zeros(void **state)
{
	uint8_t block[TAR_BLOCK] = {0};

	(void)state;
	assert_true(tar_is_end(block));
	block[511] = 1;
	assert_false(tar_is_end(block));
	assert_int_equal(tar_padding(0), 0);
	assert_int_equal(tar_padding(1), 511);
	assert_int_equal(tar_padding(512), 0);
}

static void bad_records_are_refused(void **state)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{"8 path=\n", 0},
		{"12 path=a/b\n", 0},
		{"9 size=3\n", 0},
		{"20 comment=whatever\n", 0},
		{"12 path=a/b", -EINVAL},
		{"99 path=a/b\n", -EINVAL},
		{"0 path=a\n", -EINVAL},
		{"-5 path=a\n", -EINVAL},
		{"path=a\n", -EINVAL},
		{"9 nothing\n", -EINVAL},
		{"10 size=-3\n", -EINVAL},
		{"28 size=99999999999999999999\n", -EINVAL},
		{"21 GNU.sparse.size=1\n", -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fill(TAR_FILE, 3, 0, 1);
		if (tar_read_pax(cases[i].text, strlen(cases[i].text), &entry) != cases[i].result)
			fail_msg("%s", cases[i].text);
	}
	fill(TAR_FILE, 3, 0, 1);
	assert_int_equal(tar_read_pax("12 path=a\0b\n", 12, &entry), -EINVAL);
}

static void names_are_cleaned_or_refused(void **state)
{
	static const struct {
		const char *name, *clean;
	} cases[] = {
		{"a", "a"},
		{"./a/b/", "a/b"},
		{"./", ""},
		{".", ""},
		{"a//b/./c", "a/b/c"},
		{"/etc/x", NULL},
		{"..", NULL},
		{"a/../b", NULL},
		{"./../x", NULL},
		{"..a/...", "..a/..."},
		{"d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d", NULL},
	};
	char name[TAR_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(name, cases[i].name, strlen(cases[i].name) + 1);
		if ((tar_clean_name(name) == 0) != (cases[i].clean != NULL))
			fail_msg("%s", cases[i].name);
		if (cases[i].clean)
			assert_string_equal(name, cases[i].clean);
	}
}

static void links_must_stay(void **state)
{
	(void)state;
	assert_true(tar_link_stays("a", "b"));
	assert_true(tar_link_stays("a/b", "../c"));
	assert_true(tar_link_stays("a/b/c", "../../x/y"));
	assert_true(tar_link_stays("a", "./b/../c"));
	assert_false(tar_link_stays("a", ".."));
	assert_false(tar_link_stays("a", "../x"));
	assert_false(tar_link_stays("a/b", "../../x"));
	assert_false(tar_link_stays("a/b", "c/../../../x"));
	assert_false(tar_link_stays("a", "/etc/passwd"));
	assert_false(tar_link_stays("a", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_headers_are_read),
		cmocka_unit_test(a_header_with_a_wrong_checksum_is_invalid),
		cmocka_unit_test(the_end_is_zeros),
		cmocka_unit_test(bad_records_are_refused),
		cmocka_unit_test(names_are_cleaned_or_refused),
		cmocka_unit_test(links_must_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
