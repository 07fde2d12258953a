/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <errno.h>

#define TAR_MAX (256u << 10)

struct source {
	const char *data;
	size_t len;
	int fail; /* at the end of the data: 0 for EOF, or a negative errno */
};

static ptrdiff_t read_source(void *ctx, void *data, size_t size)
{
	struct source *s = ctx;
	size_t n = size < s->len ? size : s->len;

	if (n == 0)
		return s->fail;
	memcpy(data, s->data, n);
	s->data += n;
	s->len -= n;
	return (ptrdiff_t)n;
}

static const struct import_limits generous = {
	.root_bytes = 1 << 20, .file_bytes = 1 << 20, .entries = 100};

static int apply(struct rig *r, struct import_counts *counts, const struct import_limits *limits,
                 const struct rig_entry *entries, size_t count)
{
	cleanup_free char *tar = xmalloc(TAR_MAX);
	struct source source = {tar, rig_tar(tar, TAR_MAX, entries, count), 0};
	const struct layer layer = {r->root, limits, counts, read_source, &source};

	r->err = (struct error){0};
	return layer_apply(&layer, &r->err);
}

#define APPLY(r, counts, limits, ...)                                                              \
	apply(r, counts, limits, (const struct rig_entry[]){__VA_ARGS__},                          \
	      ARRAY_SIZE(((const struct rig_entry[]){__VA_ARGS__})))

static void entries_become_what_they_are(void **state)
{
	struct rig *r = *state;
	struct import_counts c = {.out = -1};
	struct stat st;

	assert_int_equal(APPLY(r, &c, &generous, {"a/run", "#!", 0, 06755}, {"d", NULL, AE_IFDIR},
	                       {"l", "a/run", AE_IFLNK}, {"h", "a/run", RIG_HARD},
	                       {"null", NULL, AE_IFCHR}, {"pipe", NULL, AE_IFIFO}),
	                 0);
	assert_int_equal(fstatat(r->root, "a/run", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(st.st_nlink, 2);
	assert_true(rig_has(r, "l") && rig_has(r, "d"));
	assert_false(rig_has(r, "null") || rig_has(r, "pipe"));
	assert_int_equal(c.dropped, 2);
	assert_int_equal(c.entries, 6);
	assert_int_equal(c.bytes, 2);
}

static void whiteouts_are_of_earlier_layers(void **state)
{
	struct rig *r = *state;
	struct import_counts c = {.out = -1};

	assert_int_equal(APPLY(r, &c, &generous, {"a/old"}, {"a/kept"}, {"b/x"}, {"b/y/z"}), 0);
	assert_int_equal(APPLY(r, &c, &generous, {"a/.wh.old"}, {"b/y/new"}, {"b/.wh..wh..opq"},
	                       {"a/added"}, {"a/.wh.added"}, {"a/.wh..wh.plnk"}),
	                 0);
	assert_false(rig_has(r, "a/old") || rig_has(r, "b/x") || rig_has(r, "b/y/z"));
	assert_true(rig_has(r, "a/kept") && rig_has(r, "b/y/new") && rig_has(r, "a/added"));
}

static void exceeded_limits_are_refused_by_name(void **state)
{
	struct rig *r = *state;
	static const struct {
		struct import_limits limits;
		const char *limit;
	} rows[] = {
		{{.root_bytes = 100, .file_bytes = 4, .entries = 9}, "file"},
		{{.root_bytes = 9, .file_bytes = 9, .entries = 9}, "root"},
		{{.root_bytes = 100, .file_bytes = 9, .entries = 1}, "entries"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct import_counts c = {.out = -1};

		assert_int_equal(APPLY(r, &c, &rows[i].limits, {"a", "12345"}, {"b", "12345"}), -1);
		assert_int_equal(r->err.code, ERR_TOO_LARGE);
		assert_string_equal(r->err.field, rows[i].limit);
	}
	{
		const struct import_limits fits = {.root_bytes = 10, .file_bytes = 5, .entries = 2};
		struct import_counts c = {.out = -1};

		assert_int_equal(APPLY(r, &c, &fits, {"a", "12345"}, {"b", "12345"}), 0);
	}
}

static void progress_is_reported(void **state)
{
	struct rig *r = *state;
	struct import_counts c = {.layers = 3, .layer = 2, .entries = 5, .bytes = 1000};
	char text[2 * IMPORT_PROGRESS_LEN] = "";
	int fds[2];

	(void)r;
	assert_int_equal(fd_pipe(fds, O_NONBLOCK), 0);
	c.out = fds[1];
	layer_report(&c, true);
	layer_report(&c, false); /* no work since the last report */
	c.bytes += 100 << 20;
	layer_report(&c, false);
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "P 3 2 5 1000\nP 3 2 5 104858600\n");
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
}

static void a_stream_that_fails_is_a_layer_that_fails(void **state)
{
	struct rig *r = *state;
	static const struct {
		int fail;
		enum error_code code;
	} rows[] = {{-EBADMSG, ERR_INVALID}, {-EFBIG, ERR_TOO_LARGE}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_free char *tar = xmalloc(TAR_MAX);
		struct import_counts c = {.out = -1};
		struct source source = {tar, 0, rows[i].fail};
		const struct layer layer = {r->root, &generous, &c, read_source, &source};

		(void)rig_tar(tar, TAR_MAX, (const struct rig_entry[]){{"a", "x"}}, 1);
		source.len = 1024; /* the entry without the archive's end */
		r->err = (struct error){0};
		assert_int_equal(layer_apply(&layer, &r->err), -1);
		assert_int_equal(r->err.code, rows[i].code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(entries_become_what_they_are),
		RIG_TEST(whiteouts_are_of_earlier_layers),
		RIG_TEST(exceeded_limits_are_refused_by_name),
		RIG_TEST(progress_is_reported),
		RIG_TEST(a_stream_that_fails_is_a_layer_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
