/* SPDX-License-Identifier: Apache-2.0 */
/* What a box and a server send: a request and lines of messages. What is found lies inside the
 * text, and is a value of its own. */
#include <string.h>

#include "fuzz.h"
#include "gateway/answer.h"
#include "gateway/lines.h"

#define LINE_MAX_ 1024

static void check_value(const struct scan_value *v, const char *text, size_t len)
{
	struct scan_value again;

	if (v->kind == SCAN_ABSENT)
		return;
	require(v->at >= text && v->len > 0 && v->len <= len);
	require((size_t)(v->at - text) <= len - v->len);
	require(scan_text(v->at, v->len, &again) == 0);
	require(again.kind == v->kind && again.len == v->len);
}

static void check_text(const char *text, size_t len)
{
	static const char *const names[] = {"id", "method", "result", "error"};
	struct scan_value whole, item, part[4];
	char word[64];
	unsigned n;
	size_t pos = 0;

	if (scan_text(text, len, &whole) < 0)
		return;
	check_value(&whole, text, len);
	if (scan_members(&whole, names, 4, part) >= 0)
		for (size_t i = 0; i < 4; i++) {
			check_value(&part[i], text, len);
			(void)!scan_string(&part[i], word, sizeof(word));
			(void)!scan_number(&part[i], &n);
		}
	while (scan_next(&whole, &pos, &item))
		check_value(&item, text, len);
}

static void check_request(const char *text, size_t len)
{
	static struct request request;

	if (request_read(text, len, &request))
		return;
	require(request.url[0] && request.tool[0]);
	require(strlen(request.url) < sizeof(request.url));
	require(strlen(request.tool) < sizeof(request.tool));
	check_value(&request.arguments, text, len);
}

static void check_lines(const char *text, size_t len)
{
	struct lines l;
	struct line line;
	size_t step = len > 0 ? 1 + (unsigned char)text[0] : 1;

	lines_init(&l, LINE_MAX_);
	for (size_t done = 0; done < len; done += step) {
		lines_add(&l, text + done, len - done < step ? len - done : step);
		while (lines_next(&l, &line)) {
			require(line.is_cut || line.len <= LINE_MAX_);
			require(!memchr(line.text, '\n', line.len));
		}
	}
	lines_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	check_text(text, size);
	check_request(text, size);
	check_lines(text, size);
	return 0;
}
