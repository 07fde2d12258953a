/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"

static bool interrupt_once, short_writes;
static int write_error, fchmod_error;

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len)
{
	if (interrupt_once || write_error) {
		errno = interrupt_once ? EINTR : write_error;
		interrupt_once = false;
		return -1;
	}
	return __real_write(fd, data, short_writes ? 1 : len);
}

int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode)
{
	if (!fchmod_error)
		return __real_fchmod(fd, mode);
	errno = fchmod_error;
	return -1;
}

static char path[64];
static int dir = -1;

static int set_up(void **state)
{
	(void)state;
	interrupt_once = short_writes = false;
	write_error = fchmod_error = 0;
	(void)snprintf(path, sizeof(path), "/tmp/millibox-test-file-XXXXXX");
	if (!mkdtemp(path))
		return -1;
	dir = fd_open(path, O_RDONLY | O_DIRECTORY, 0);
	return dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	static const char *const dirs[] = {"a/b/c", "a/b", "a"};

	(void)state;
	(void)unlinkat(dir, "f", 0);
	(void)unlinkat(dir, "link", 0);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		(void)unlinkat(dir, dirs[i], AT_REMOVEDIR);
	dir = fd_close(dir);
	return rmdir(path);
}

/* Created anew by each call. */
static void put(const void *data, size_t len)
{
	(void)unlinkat(dir, "f", 0);
	assert_int_equal(file_create_at(dir, "f", 0600, data, len), 0);
}

static void put_text(const char *text)
{
	put(text, strlen(text));
}

static void a_file_is_appended_whole(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(1000);

	(void)state;
	put("a\0b", 3);
	assert_int_equal(buf_add_str(&b, ">"), 0);
	assert_int_equal(file_read_at(dir, "f", &b), 0);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, ">a\0b\0", 5);
	put_text("");
	assert_int_equal(file_read_at(dir, "f", &b), 0);
	assert_int_equal(b.len, 4);
}

static void a_large_file_is_read_in_pieces(void **state)
{
	enum {
		LEN = 200000
	};
	cleanup_buf struct buf b = BUF_INIT(LEN);
	static char data[LEN];

	(void)state;
	for (size_t i = 0; i < LEN; i++)
		data[i] = (char)(i * 7 % 251);
	put(data, LEN);
	assert_int_equal(file_read_at(dir, "f", &b), 0);
	assert_int_equal(b.len, LEN);
	assert_memory_equal(b.data, data, LEN);
}

static void a_file_beyond_the_maximum_adds_nothing(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(5);

	(void)state;
	put_text("12345");
	assert_int_equal(file_read_at(dir, "f", &b), 0);
	buf_reset(&b);
	assert_int_equal(buf_add_str(&b, "x"), 0);
	assert_int_equal(file_read_at(dir, "f", &b), -EFBIG);
	assert_string_equal(b.data, "x");
	assert_int_equal(b.len, 1);
}

static void unreadable_files_return_their_errno(void **state)
{
	cleanup_buf struct buf b = BUF_INIT(5);
	char text[8] = "old";
	uint64_t value = 7;

	(void)state;
	assert_int_equal(file_read_at(dir, "f", &b), -ENOENT);
	assert_int_equal(file_read_at(dir, ".", &b), -EISDIR);
	b.max = 0;
	assert_int_equal(file_read_at(dir, ".", &b), -EISDIR);
	assert_int_equal(file_read_text_at(dir, ".", text, sizeof(text)), -EISDIR);
	assert_string_equal(text, "");
	assert_int_equal(file_read_text_at(dir, "f", text, sizeof(text)), -ENOENT);
	assert_int_equal(file_read_u64_at(dir, "f", &value), -ENOENT);
	assert_int_equal(value, 7);
}

static void a_short_text_loses_its_last_newline(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"one\n", "one"}, {"one", "one"}, {"one\n\n", "one\n"},
		{"\n", ""},       {"", ""},       {"1234567", "1234567"},
	};
	char text[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put_text(rows[i].in);
		assert_int_equal(file_read_text_at(dir, "f", text, sizeof(text)), 0);
		assert_string_equal(text, rows[i].out);
	}
}

static void a_text_that_is_too_long_or_not_text_is_refused(void **state)
{
	char text[8] = "old";

	(void)state;
	put_text("12345678");
	assert_int_equal(file_read_text_at(dir, "f", text, sizeof(text)), -EFBIG);
	assert_string_equal(text, "");
	put("a\0b", 3);
	assert_int_equal(file_read_text_at(dir, "f", text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "");
}

static void numbers_are_strict_and_max_is_the_largest(void **state)
{
	uint64_t value = 7;

	(void)state;
	put_text("12345\n");
	assert_int_equal(file_read_u64_at(dir, "f", &value), 0);
	assert_int_equal(value, 12345);
	put_text("max\n");
	assert_int_equal(file_read_u64_at(dir, "f", &value), 0);
	assert_true(value == UINT64_MAX);
	value = 7;
	put_text("-1\n");
	assert_int_equal(file_read_u64_at(dir, "f", &value), -EINVAL);
	put_text("maximum\n");
	assert_int_equal(file_read_u64_at(dir, "f", &value), -EINVAL);
	put_text("");
	assert_int_equal(file_read_u64_at(dir, "f", &value), -EINVAL);
	assert_int_equal(value, 7);
}

static void a_key_is_found_by_its_whole_name(void **state)
{
	static const char text[] = "oom 1\noom_kill 23\nusage_usec 456\nlast 7";
	uint64_t value = 7;

	(void)state;
	assert_int_equal(file_find_key(text, "oom_kill", &value), 0);
	assert_int_equal(value, 23);
	assert_int_equal(file_find_key(text, "oom", &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(file_find_key(text, "last", &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(file_find_key(text, "kill", &value), -ENOENT);
	assert_int_equal(file_find_key(text, "usage", &value), -ENOENT);
	assert_int_equal(file_find_key("", "oom", &value), -ENOENT);
	assert_int_equal(file_find_key("oom x\n", "oom", &value), -EINVAL);
	assert_int_equal(file_find_key("oom 0000000000000000000000000000000001\n", "oom", &value),
	                 -EINVAL);
	assert_int_equal(value, 7);
}

static void a_kept_file_is_read_as_it_is_now(void **state)
{
	cleanup_close int fd = -1;
	char text[8];

	(void)state;
	put_text("one\n");
	fd = fd_open_at(dir, "f", O_RDWR, 0);
	assert_int_equal(file_read_again(fd, text, sizeof(text)), 0);
	assert_string_equal(text, "one");
	assert_int_equal(pwrite(fd, "two", 3, 0), 3);
	assert_int_equal(file_read_again(fd, text, sizeof(text)), 0);
	assert_string_equal(text, "two");
	assert_int_equal(pwrite(fd, "too long", 8, 0), 8);
	assert_int_equal(file_read_again(fd, text, sizeof(text)), -EFBIG);
	assert_string_equal(text, "");
	assert_int_equal(file_read_again(-1, text, sizeof(text)), -EBADF);
}

static void writing_needs_an_existing_file_and_one_write(void **state)
{
	char text[32];

	(void)state;
	assert_int_equal(file_write_at(dir, "f", "x"), -ENOENT);
	put_text("");
	interrupt_once = true;
	assert_int_equal(file_write_at(dir, "f", "hello"), 0);
	assert_int_equal(file_read_text_at(dir, "f", text, sizeof(text)), 0);
	assert_string_equal(text, "hello");
	write_error = EBUSY;
	assert_int_equal(file_write_at(dir, "f", "x"), -EBUSY);
	write_error = 0;
	short_writes = true;
	assert_int_equal(file_write_at(dir, "f", "xy"), -EIO);
}

static void a_created_file_has_the_mode_asked_for(void **state)
{
	struct stat st;
	mode_t before = umask(077);

	(void)state;
	assert_int_equal(file_create_at(dir, "f", 0644, "x", 1), 0);
	(void)umask(before);
	assert_int_equal(fstatat(dir, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(file_create_at(dir, "f", 0644, "y", 1), -EEXIST);
	assert_int_equal(symlinkat("elsewhere", dir, "link"), 0);
	assert_int_equal(file_create_at(dir, "link", 0644, "y", 1), -EEXIST);
}

static void a_file_that_could_not_be_filled_is_not_left(void **state)
{
	(void)state;
	write_error = ENOSPC;
	assert_int_equal(file_create_at(dir, "f", 0644, "x", 1), -ENOSPC);
	assert_int_equal(faccessat(dir, "f", F_OK, 0), -1);
	write_error = 0;
	fchmod_error = EPERM;
	assert_int_equal(file_create_at(dir, "f", 0644, "x", 1), -EPERM);
	assert_int_equal(faccessat(dir, "f", F_OK, 0), -1);
}

static void directories_are_made_with_their_parents(void **state)
{
	char deep[PATH_MAX];
	struct stat st;

	(void)state;
	(void)snprintf(deep, sizeof(deep), "%s/a//b/c", path);
	assert_int_equal(file_mkdir_parents(deep, 0700), 0);
	assert_int_equal(fstatat(dir, "a/b/c", &st, 0), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(file_mkdir_parents(deep, 0700), 0);
	(void)snprintf(deep, sizeof(deep), "%s/a/", path);
	assert_int_equal(file_mkdir_parents(deep, 0700), 0);
}

static void directories_are_not_made_through_files(void **state)
{
	char deep[PATH_MAX];
	char endless[PATH_MAX + 1];

	(void)state;
	put_text("");
	(void)snprintf(deep, sizeof(deep), "%s/f", path);
	assert_int_equal(file_mkdir_parents(deep, 0700), -ENOTDIR);
	(void)snprintf(deep, sizeof(deep), "%s/f/x", path);
	assert_int_equal(file_mkdir_parents(deep, 0700), -ENOTDIR);
	assert_int_equal(symlinkat("nowhere", dir, "link"), 0);
	(void)snprintf(deep, sizeof(deep), "%s/link", path);
	assert_int_equal(file_mkdir_parents(deep, 0700), -ENOENT);
	assert_int_equal(file_mkdir_parents("", 0700), -ENOENT);
	assert_int_equal(file_mkdir_parents("/proc/no/such", 0700), -ENOENT);
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	assert_int_equal(file_mkdir_parents(endless, 0700), -ENAMETOOLONG);
}

#define file_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(a_file_is_appended_whole),
		file_test(a_large_file_is_read_in_pieces),
		file_test(a_file_beyond_the_maximum_adds_nothing),
		file_test(unreadable_files_return_their_errno),
		file_test(a_short_text_loses_its_last_newline),
		file_test(a_text_that_is_too_long_or_not_text_is_refused),
		file_test(numbers_are_strict_and_max_is_the_largest),
		file_test(a_key_is_found_by_its_whole_name),
		file_test(a_kept_file_is_read_as_it_is_now),
		file_test(writing_needs_an_existing_file_and_one_write),
		file_test(a_created_file_has_the_mode_asked_for),
		file_test(a_file_that_could_not_be_filled_is_not_left),
		file_test(directories_are_made_with_their_parents),
		file_test(directories_are_not_made_through_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
