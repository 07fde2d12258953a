/* SPDX-License-Identifier: Apache-2.0 */
/* However a form is split, and however little of it is consumed at a time, the result is the
 * same. */
#include <string.h>

#include "api/json/multipart.h"
#include "base/buf.h"
#include "fuzz.h"

struct seen {
	struct buf text;
	size_t most; /* bytes consumed at a time */
};

static int on_part(void *ctx, const char *name, const char *filename, struct error *err)
{
	struct seen *s = ctx;

	(void)err;
	require(buf_addf(&s->text, "[%s|%s]", name, filename ? filename : "-") == 0);
	return 0;
}

static ssize_t on_data(void *ctx, const char *data, size_t len, struct error *err)
{
	struct seen *s = ctx;
	size_t n = len < s->most ? len : s->most;

	(void)err;
	require(len > 0);
	require(buf_add(&s->text, data, n) == 0);
	return (ssize_t)n;
}

static int on_part_end(void *ctx, struct error *err)
{
	struct seen *s = ctx;

	(void)err;
	require(buf_add_str(&s->text, "[end]") == 0);
	return 0;
}

/* Return: whether it was well-formed so far. */
static bool read_form(const char *data, size_t size, size_t step, struct seen *s)
{
	const struct multipart_events events = {s, on_part, on_data, on_part_end};
	struct error err = {0};
	struct multipart *m = multipart_new("multipart/form-data; boundary=B", &events, &err);
	size_t at = 0, idle = 0;
	bool fine = true;

	require(m);
	while (fine && at < size) {
		size_t n = size - at < step ? size - at : step;
		ssize_t used = multipart_feed(m, data + at, n, &err);

		require(used <= (ssize_t)n && (used < 0) == (error_is_set(&err) != 0));
		/* Held-back bytes are passed on without using input, but not for ever. */
		idle = used == 0 ? idle + 1 : 0;
		require(idle < 2 * MULTIPART_BOUNDARY_MAX);
		fine = used >= 0;
		at += fine ? (size_t)used : 0;
	}
	multipart_free(m);
	return fine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = {BUF_INIT(1 << 24), SIZE_MAX}, pieces = {BUF_INIT(1 << 24), 1};
	bool a = read_form((const char *)data, size, size ? size : 1, &whole);
	bool b = read_form((const char *)data, size, 3, &pieces);

	require(a == b);
	require(whole.text.len == pieces.text.len);
	require(whole.text.len == 0 ||
	        memcmp(whole.text.data, pieces.text.data, whole.text.len) == 0);
	buf_done(&whole.text);
	buf_done(&pieces.text);
	return 0;
}
