/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/root_tar.h"
#include "unit.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/file.h"
#include "remote/root_names.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A root in a directory of the test's own. */
struct tree {
	char path[32];
	int dir;
};

static struct tree make_tree(void)
{
	struct tree tree = {.path = "/tmp/mb-tar-XXXXXX"};

	assert_non_null(mkdtemp(tree.path));
	tree.dir = fd_open(tree.path, O_RDONLY | O_DIRECTORY, 0);
	assert_true(tree.dir >= 0);
	return tree;
}

static void add_file(const struct tree *tree, const char *path, unsigned mode, const char *text)
{
	assert_int_equal(file_create_at(tree->dir, path, mode, text, strlen(text)), 0);
}

static void remove_tree(struct tree *tree, const char *const *paths)
{
	for (; *paths; paths++)
		if (unlinkat(tree->dir, *paths, 0) < 0)
			assert_int_equal(unlinkat(tree->dir, *paths, AT_REMOVEDIR), 0);
	(void)fd_close(tree->dir);
	assert_int_equal(rmdir(tree->path), 0);
}

static bool is_above(const char *path)
{
	return strcmp(path, "ours") == 0 || strcmp(path, "dir") == 0;
}

/* The whole tar of @tree, read @step bytes at a time. */
static struct buf read_all(const struct tree *tree, size_t step)
{
	struct buf above = BUF_INIT(1 << 16), out = BUF_INIT(1 << 22);
	char piece[8192];
	struct root_tar *t;
	ssize_t n;

	assert_int_equal(root_tar_add(&above, &(struct root_name){TAR_DIR, 0755, "dir/", NULL}), 0);
	assert_int_equal(
		root_tar_add(&above, &(struct root_name){TAR_FILE, 0644, "ours", "of the box"}), 0);
	t = root_tar_new(fd_open(tree->path, O_RDONLY | O_DIRECTORY, 0), &above, is_above);
	while ((n = root_tar_read(t, piece, step)) > 0)
		assert_int_equal(buf_add(&out, piece, (size_t)n), 0);
	assert_int_equal(n, 0);
	root_tar_free(t);
	buf_done(&above);
	return out;
}

/* Return: the entry @name and its content's place, or false. Each name stands once. */
static bool find_entry(const struct buf *tar, const char *name, struct tar_entry *ret,
                       const char **ret_data)
{
	size_t at = 0;
	bool found = false;

	while (at + TAR_BLOCK <= tar->len && !tar_is_end((const uint8_t *)tar->data + at)) {
		static struct tar_entry e;
		struct tar_entry *entry = &e;

		memset(&e, 0, sizeof(e));
		assert_int_equal(tar_read((const uint8_t *)tar->data + at, entry), 0);
		at += TAR_BLOCK;
		if (e.kind == TAR_PAX) {
			size_t len = (size_t)e.size;
			static struct tar_entry next;

			memset(&next, 0, sizeof(next));
			assert_int_equal(
				tar_read((const uint8_t *)tar->data + at + len + tar_padding(len),
			                 &next),
				0);
			assert_int_equal(tar_read_pax(tar->data + at, len, &next), 0);
			at += len + tar_padding(len) + TAR_BLOCK;
			entry = &next;
		}
		if (strcmp(entry->name, name) == 0) {
			assert_false(found);
			found = true;
			*ret = *entry;
			*ret_data = tar->data + at;
		}
		at += (size_t)(entry->size + tar_padding(entry->size));
	}
	assert_true(at + 2 * TAR_BLOCK <= tar->len);
	return found;
}

static struct tar_entry entry; /* large */

static void a_root_is_packed_whatever_the_pieces(void **state)
{
	static const char *const paths[] = {"dir/inside", "dir", "file", "link", NULL};
	static const size_t steps[] = {1, 7, 512, 8192};
	struct tree tree = make_tree();
	const char *data = NULL;

	(void)state;
	assert_int_equal(mkdirat(tree.dir, "dir", 0700), 0);
	add_file(&tree, "dir/inside", 0640, "below");
	add_file(&tree, "file", 06755, "content");
	assert_int_equal(symlinkat("/etc/passwd", tree.dir, "link"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct buf tar = read_all(&tree, steps[i]);

		assert_true(find_entry(&tar, "file", &entry, &data));
		assert_int_equal(entry.mode, 0755); /* no set-id bits */
		assert_memory_equal(data, "content", 7);
		assert_true(find_entry(&tar, "dir/inside", &entry, &data));
		assert_memory_equal(data, "below", 5);
		assert_true(find_entry(&tar, "link", &entry, &data));
		assert_int_equal(entry.kind, TAR_SYMLINK);
		assert_string_equal(entry.link, "/etc/passwd"); /* as text: nothing follows it */
		assert_true(find_entry(&tar, "dir/", &entry, &data));
		assert_int_equal(entry.mode, 0755); /* ours */
		buf_done(&tar);
	}
	remove_tree(&tree, paths);
}

static void our_names_win_and_stand_once(void **state)
{
	static const char *const paths[] = {"ours", "dir", NULL};
	struct tree tree = make_tree();
	struct buf tar;
	const char *data = NULL;

	(void)state;
	/* A hostile root: links where the box needs a file and a directory. */
	assert_int_equal(symlinkat("/etc/shadow", tree.dir, "ours"), 0);
	assert_int_equal(symlinkat("..", tree.dir, "dir"), 0);
	tar = read_all(&tree, 4096);
	assert_true(find_entry(&tar, "ours", &entry, &data));
	assert_int_equal(entry.kind, TAR_FILE);
	assert_memory_equal(data, "of the box", 10);
	assert_false(find_entry(&tar, "dir", &entry, &data));
	assert_true(find_entry(&tar, "dir/", &entry, &data));
	buf_done(&tar);
	remove_tree(&tree, paths);
}

static void what_is_neither_file_directory_nor_link_is_left_out(void **state)
{
	static const char *const paths[] = {"fifo", "file", NULL};
	struct tree tree = make_tree();
	struct buf tar;
	const char *data = NULL;

	(void)state;
	assert_int_equal(mkfifoat(tree.dir, "fifo", 0644), 0);
	add_file(&tree, "file", 0644, "");
	tar = read_all(&tree, 4096);
	assert_false(find_entry(&tar, "fifo", &entry, &data));
	assert_true(find_entry(&tar, "file", &entry, &data));
	buf_done(&tar);
	remove_tree(&tree, paths);
}

static void a_file_that_shrinks_meanwhile_keeps_its_announced_length(void **state)
{
	static const char *const paths[] = {"file", NULL};
	struct tree tree = make_tree();
	struct buf above = BUF_INIT(1 << 16), tar = BUF_INIT(1 << 20);
	cleanup_free char *text = xcalloc(1, 100001);
	char piece[8192];
	struct root_tar *t;
	const char *data = NULL;
	ssize_t n;

	(void)state;
	memset(text, 'x', 100000);
	add_file(&tree, "file", 0644, text);
	t = root_tar_new(fd_open(tree.path, O_RDONLY | O_DIRECTORY, 0), &above, is_above);
	n = root_tar_read(t, piece, TAR_BLOCK);
	assert_int_equal(n, TAR_BLOCK);
	assert_int_equal(buf_add(&tar, piece, (size_t)n), 0);
	{
		cleanup_close int fd = fd_open_at(tree.dir, "file", O_WRONLY | O_TRUNC, 0);

		assert_true(fd >= 0);
	}
	while ((n = root_tar_read(t, piece, sizeof(piece))) > 0)
		assert_int_equal(buf_add(&tar, piece, (size_t)n), 0);
	root_tar_free(t);
	assert_true(find_entry(&tar, "file", &entry, &data));
	assert_int_equal(entry.size, 100000);
	buf_done(&tar);
	remove_tree(&tree, paths);
}

static void the_names_of_a_box_fit_and_know_themselves(void **state)
{
	struct buf b = BUF_INIT(ROOT_NAMES_MAX);
	const char *data = NULL;

	(void)state;
	assert_int_equal(root_names(&b, UINT32_MAX - 2000, true), 0);
	assert_int_equal(buf_add(&b, (char[2 * TAR_BLOCK]){0}, 2 * TAR_BLOCK), 0);
	assert_true(find_entry(&b, "etc/passwd", &entry, &data));
	assert_non_null(strstr(data, "user:x:4294965295:4294965295:user:/workspace:/bin/sh\n"));
	assert_true(find_entry(&b, "workspace/", &entry, &data));
	assert_true(root_names_has("workspace") && root_names_has("etc/passwd"));
	assert_true(root_names_has("etc") && root_names_has("opt/millibox/runners"));
	assert_false(root_names_has("etc/pass") || root_names_has("work") || root_names_has("usr"));
	assert_false(root_names_has("workspace/x"));
	/* What is mounted there must be there: an image has no say below this directory. */
	assert_true(find_entry(&b, "opt/millibox/agent", &entry, &data));
	assert_int_equal(entry.kind, TAR_FILE);
	assert_true(root_names_has("opt/millibox/agent") &&
	            root_names_has("opt/millibox/runners/python"));
	assert_false(root_names_has("opt/milli") || root_names_has("opt/other"));
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_is_packed_whatever_the_pieces),
		cmocka_unit_test(our_names_win_and_stand_once),
		cmocka_unit_test(what_is_neither_file_directory_nor_link_is_left_out),
		cmocka_unit_test(a_file_that_shrinks_meanwhile_keeps_its_announced_length),
		cmocka_unit_test(the_names_of_a_box_fit_and_know_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
