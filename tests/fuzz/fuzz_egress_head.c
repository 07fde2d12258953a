/* SPDX-License-Identifier: Apache-2.0 */
/* A request to the proxy and its body: what the server gets is as strict, has the same target, path
 * and length, and no field that was only for the proxy. How the bytes of the body are cut into
 * pieces changes nothing. */
#include <string.h>
#include <strings.h>

#include "egress/head.h"
#include "egress/vault.h"
#include "fuzz.h"

static struct head head, again; /* large */

static void check_fields(const struct head *h)
{
	require(h->field_count <= HEAD_FIELDS);
	for (size_t i = 0; i < h->field_count; i++) {
		const struct head_field *f = &h->fields[i];

		require(f->name_len > 0);
		for (size_t n = 0; n < f->name_len; n++)
			require(f->name[n] > ' ' && f->name[n] < 0x7f && f->name[n] != ':');
		for (size_t n = 0; n < f->value_len; n++)
			require((unsigned char)f->value[n] >= ' ' || f->value[n] == '\t');
	}
}

static bool is_hop_by_hop(const struct head_field *f)
{
	return strncasecmp(f->name, "Proxy-", 6) == 0 ||
	       (f->name_len == 7 && strncasecmp(f->name, "Upgrade", 7) == 0) ||
	       (f->name_len == 2 && strncasecmp(f->name, "TE", 2) == 0);
}

/* The server's head in absolute form is a request to the proxy again. */
static void check_origin(void)
{
	struct buf origin = BUF_INIT(1 << 17), absolute = BUF_INIT(1 << 17);
	struct error err = {0};
	char host[TARGET_TEXT_LEN];
	size_t method = strlen(head.method) + 1;

	require(head_write_origin(&head, NULL, &origin) == 0);
	require(origin.len > method && origin.data[method] == '/');
	target_format(&head.target, 0, host);
	require(buf_addf(&absolute, "%s http://%s%s", head.method, host, origin.data + method) ==
	        0);
	require(absolute.len == origin.len + strlen(host) + 7); /* no NUL inside */
	if (head_parse(absolute.data, absolute.len, NULL, &again, &err) != 1) {
		/* Only what was added may be too much. */
		require(absolute.len > HEAD_MAX || head.field_count + 2 > HEAD_FIELDS);
		buf_done(&origin);
		buf_done(&absolute);
		return;
	}
	check_fields(&again);
	require(again.size == absolute.len);
	require(strcmp(again.method, head.method) == 0);
	require(target_equal(&again.target, &head.target));
	require(again.path_len == head.path_len);
	require(memcmp(again.path, head.path, head.path_len) == 0);
	require(again.chunked == head.chunked && again.length == head.length);
	require(again.has_length == head.has_length && again.is_http10 == head.is_http10);
	for (size_t i = 0; i < again.field_count; i++)
		require(!is_hop_by_hop(&again.fields[i]));
	buf_done(&origin);
	buf_done(&absolute);
}

/* Return: bytes of the body, or -1. */
static int64_t feed(const char *data, size_t size, size_t step, bool *ret_done)
{
	struct chunks c = {0};
	size_t used = 0;

	*ret_done = false;
	while (used < size && !*ret_done) {
		size_t len = size - used < step ? size - used : step;
		int64_t n = chunks_feed(&c, data + used, len, ret_done);

		if (n < 0)
			return -1;
		require((size_t)n == len || *ret_done);
		used += (size_t)n;
	}
	return (int64_t)used;
}

static void check_chunks(const char *data, size_t size)
{
	bool whole_done, parts_done;
	int64_t whole = feed(data, size, size ? size : 1, &whole_done);

	require(feed(data, size, 1, &parts_done) == whole && whole_done == parts_done);
	require(whole < 0 || !whole_done ||
	        (whole >= 5 && memcmp(data + whole - 4, "\r\n\r\n", 4) == 0));
}

/* Inside of a tunnel, and with a secret: the value is in no line that the code wrote, and the
 * request is one. */
static void check_inside(const char *text, size_t size)
{
	static const struct target site = {.host = "site.test", .port = 443};
	static const char record[] = "\1\0\0\0\1\0\0\0name\0X-Key\0{value}\0mark\0"
				     "0123456789abcdef\0https://site.test:443";
	struct buf out = BUF_INIT(1 << 18);
	struct error err = {0};
	struct vault *v;
	int r = head_parse(text, size, &site, &head, &err);

	require((r < 0) == error_is_set(&err));
	if (r != 1)
		return;
	check_fields(&head);
	require(target_equal(&head.target, &site) && !head.is_connect && head.path[0] == '/');
	v = vault_parse(record, sizeof(record), 1, &err);
	require(v != NULL);
	if (vault_write(v, &head, true, &out) == 0) {
		const char *end = memmem(out.data, out.len, "\r\n\r\n", 4);

		require(end && end + 4 == out.data + out.len);
		require(head_parse(out.data, out.len, &site, &again, &err) == 1 ||
		        out.len > HEAD_MAX || again.field_count + 4 > HEAD_FIELDS ||
		        head.field_count + 4 > HEAD_FIELDS);
	}
	vault_free(v);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct error err = {0};
	int r = head_parse(text, size, NULL, &head, &err);

	require((r < 0) == error_is_set(&err) && (r != 0 || size < HEAD_MAX));
	/* Without a head before it, too: a fuzzer finds more so. */
	check_chunks(text, size);
	check_inside(text, size);
	error_clear(&err);
	r = head_parse(text, size, NULL, &head, &err);
	if (r != 1)
		return 0;
	require(head.size <= size && head.size <= HEAD_MAX);
	require(memcmp(text + head.size - 4, "\r\n\r\n", 4) == 0);
	require(head_parse(text, head.size - 1, NULL, &again, &err) == 0);
	require(head_parse(text, head.size, NULL, &again, &err) == 1 && again.size == head.size);
	check_fields(&head);
	check_chunks(text + head.size, size - head.size);
	if (!head.is_connect)
		check_origin();
	else
		require(!head.chunked && head.length == 0);
	return 0;
}
