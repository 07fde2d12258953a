/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#else
#define ARCHITECTURE "arm64"
#endif
#define TAR_MAX (256u << 10)

static void hex_of(const char *data, size_t len, char ret_hex[IMPORT_DIGEST_LEN])
{
	unsigned char digest[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(digest, (const unsigned char *)data, len);
	(void)sodium_bin2hex(ret_hex, IMPORT_DIGEST_LEN, digest, sizeof(digest));
}

/* Return: descriptor of an archive, at offset 0. */
static int archive_of(const struct rig_entry *entries, size_t count)
{
	cleanup_free char *tar = xmalloc(TAR_MAX);
	size_t len = rig_tar(tar, TAR_MAX, entries, count);
	int fd = fd_memfd("archive", 0);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, tar, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void the_spool_keeps_files_with_their_digests(void **state)
{
	struct rig *r = *state;
	const struct import_limits limits = {.archive_bytes = 1 << 20};
	const struct rig_entry entries[] = {{"./a", "abc"},
	                                    {"d", NULL, AE_IFDIR},
	                                    {"x/l", "../a", AE_IFLNK},
	                                    {"y/l", "/a", AE_IFLNK}};
	cleanup_close int fd = archive_of(entries, ARRAY_SIZE(entries));
	struct input *in = input_new(fd, &r->err);
	struct spool *s = spool_read(in, r->root, &limits, &r->err);
	const struct spool_file *file;
	char hex[IMPORT_DIGEST_LEN];

	input_free(in);
	assert_non_null(s);
	file = spool_find(s, "a");
	assert_non_null(file);
	hex_of("abc", 3, hex);
	assert_string_equal(file->digest, hex);
	assert_int_equal(file->size, 3);
	/* A link to a sibling directory is followed once; no other link is. */
	assert_ptr_equal(spool_find(s, "x/l"), file);
	assert_null(spool_find(s, "y/l"));
	assert_null(spool_find(s, "d"));
	{
		cleanup_close int again = spool_open(s, file);
		char text[4] = "";

		assert_int_equal(fd_read_all(again, text, 3), 3);
		assert_string_equal(text, "abc");
	}
	spool_free(s);
}

static void the_spool_refuses(void **state)
{
	struct rig *r = *state;
	static const struct {
		struct rig_entry entries[2];
		uint64_t most;
		enum error_code code;
	} rows[] = {
		{{{"a", "x"}, {"a", "y"}}, 1 << 20, ERR_INVALID},
		{{{"a", "x"}, {"../a", "y"}}, 1 << 20, ERR_INVALID},
		{{{"a", "0123456789"}, {"b", ""}}, 1024, ERR_TOO_LARGE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct import_limits limits = {.archive_bytes = rows[i].most};
		cleanup_close int fd = archive_of(rows[i].entries, 2);
		struct input *in = input_new(fd, &r->err);

		r->err = (struct error){0};
		assert_null(spool_read(in, r->root, &limits, &r->err));
		input_free(in);
		assert_int_equal(r->err.code, rows[i].code);
		assert_int_equal(tree_remove(r->root, "0"), 0);
		assert_int_equal(tree_remove(r->root, "1"), 0);
	}
}

static void a_root_is_known_by_its_first_name(void **state)
{
	struct rig *r = *state;
	static const struct {
		struct rig_entry entries[2];
		bool is_root;
	} rows[] = {
		{{{"./", NULL, AE_IFDIR}, {"./bin", "usr/bin", AE_IFLNK}}, true},
		{{{"etc/passwd", "x"}, {"index.json", "{}"}}, true},
		{{{".dockerenv", ""}, {"bin", NULL, AE_IFDIR}}, true},
		{{{"/usr/bin/true", "x"}, {"b", ""}}, true},
		{{{"index.json", "{}"}, {"etc/passwd", "x"}}, false},
		{{{"blobs", NULL, AE_IFDIR}, {"bin", ""}}, false},
		{{{"../bin", "x"}, {"bin", ""}}, false},
		{{{"binary", "x"}, {"bin", ""}}, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_close int fd = archive_of(rows[i].entries, 2);
		struct input *in = input_new(fd, &r->err);

		assert_non_null(in);
		assert_int_equal(input_is_root(in), rows[i].is_root);
		input_free(in);
	}
}

/* docker save: layers by name. @diff: diff_id in the configuration; NULL: the correct one. */
static char *import_saved(struct rig *r, const char *diff, const char *architecture)
{
	const struct import_limits limits = {.archive_bytes = 1 << 20,
	                                     .root_bytes = 1 << 20,
	                                     .file_bytes = 1 << 20,
	                                     .entries = 10,
	                                     .layers = 2};
	cleanup_free char *tar = xmalloc(TAR_MAX);
	size_t len = rig_tar(tar, TAR_MAX, (const struct rig_entry[]){{"made", "x"}}, 1);
	cleanup_free char *config = NULL;
	char hex[IMPORT_DIGEST_LEN];
	struct archive *a = archive_write_new();
	cleanup_free char *outer = xmalloc(TAR_MAX);
	cleanup_close int fd = fd_memfd("saved", 0), root = -1, blobs = -1;
	struct archive_entry *entry = archive_entry_new();
	size_t used = 0;

	hex_of(tar, len, hex);
	config = xasprintf("{\"os\": \"linux\", \"architecture\": \"%s\", \"config\": {\"Env\": "
	                   "[\"A=b\", 7]}, \"rootfs\": {\"diff_ids\": [\"sha256:%s\"]}}",
	                   architecture, diff ? diff : hex);
	(void)archive_write_set_format_pax_restricted(a);
	(void)archive_write_open_memory(a, outer, TAR_MAX, &used);
	rig_add(a, &(struct rig_entry){"c.json", config});
	rig_add(a, &(struct rig_entry){"manifest.json",
	                               "[{\"Config\": \"c.json\", \"Layers\": [\"l.tar\"]}]"});
	archive_entry_set_pathname(entry, "l.tar");
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_size(entry, (la_int64_t)len);
	(void)archive_write_header(a, entry);
	(void)archive_write_data(a, tar, len);
	archive_entry_free(entry);
	(void)archive_write_close(a);
	(void)archive_write_free(a);
	assert_int_equal(fd_write_all(fd, outer, used), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(tree_remove(r->outside, "blobs"), 0);
	assert_int_equal(mkdirat(r->outside, "blobs", 0700), 0);
	blobs = fd_open_at(r->outside, "blobs", O_RDONLY | O_DIRECTORY, 0);
	root = fd_open_at(r->outside, "root", O_RDONLY | O_DIRECTORY, 0);
	r->err = (struct error){0};
	return image_import(
		&(struct image_source){
			.fd = fd, .root = root, .blobs = blobs, .progress = -1, .limits = &limits},
		&r->err);
}

static void a_saved_image_is_imported(void **state)
{
	struct rig *r = *state;
	cleanup_free char *text = import_saved(r, NULL, ARCHITECTURE);
	json_t *j = text ? json_loads(text, 0, NULL) : NULL;

	assert_non_null(j);
	assert_true(rig_has(r, "made"));
	assert_int_equal(json_integer_value(json_object_get(j, "layers")), 1);
	assert_int_equal(json_integer_value(json_object_get(j, "bytes")), 1);
	assert_true(json_integer_value(json_object_get(j, "disk_bytes")) >= 1);
	assert_int_equal(json_array_size(json_object_get(j, "env")), 1);
	json_decref(j);
}

static void digests_and_platforms_are_checked(void **state)
{
	struct rig *r = *state;
	char zeros[IMPORT_DIGEST_LEN];

	memset(zeros, '0', sizeof(zeros) - 1);
	zeros[sizeof(zeros) - 1] = '\0';
	assert_null(import_saved(r, zeros, ARCHITECTURE));
	assert_non_null(strstr(r->err.msg, "diff_id"));
	assert_null(import_saved(r, "short", ARCHITECTURE));
	assert_non_null(strstr(r->err.msg, "no digest"));
	assert_null(import_saved(r, NULL, "m68k"));
	assert_non_null(strstr(r->err.msg, "not for linux/"));
}

static void names_of_roots(void **state)
{
	static const char *const good[] = {"a", "img-0", "a.b_c-9"};
	static const char *const bad[] = {"", ".a", "A", "a/b", "..", "a b"};
	char name[IMPORT_NAME_LEN + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(import_is_name(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(import_is_name(bad[i]));
	memset(name, 'a', sizeof(name));
	name[IMPORT_NAME_LEN] = '\0';
	assert_false(import_is_name(name));
	name[IMPORT_NAME_LEN - 1] = '\0';
	assert_true(import_is_name(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(the_spool_keeps_files_with_their_digests),
		RIG_TEST(the_spool_refuses),
		RIG_TEST(a_root_is_known_by_its_first_name),
		RIG_TEST(a_saved_image_is_imported),
		RIG_TEST(digests_and_platforms_are_checked),
		cmocka_unit_test(names_of_roots),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
