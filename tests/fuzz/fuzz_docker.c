/* SPDX-License-Identifier: Apache-2.0 */
/* What a Docker Engine says: its frames give the same bytes however they are cut into pieces, and
 * its answers are read within their bounds, whatever they are. */
#include <string.h>

#include "fuzz.h"
#include "remote/demux.h"
#include "remote/docker_reply.h"

struct sums {
	uint64_t bytes[DEMUX_COUNT], sum[DEMUX_COUNT];
	int r;
};

static void add_piece(struct sums *s, const struct demux_piece *piece, const char *data)
{
	for (size_t i = 0; i < piece->len; i++)
		s->sum[piece->stream] = s->sum[piece->stream] * 31 + (uint8_t)data[i];
	s->bytes[piece->stream] += piece->len;
}

/* Of one part of the input. */
static void feed_part(struct demux *d, struct sums *s, const char *data, size_t size)
{
	for (size_t at = 0; at < size && s->r == 0;) {
		struct demux_piece piece = {.len = 0};

		s->r = demux_next(d, data + at, size - at, &piece);
		if (s->r < 0)
			return;
		require(piece.skip + piece.len <= size - at && piece.skip + piece.len > 0);
		require(piece.stream < DEMUX_COUNT);
		add_piece(s, &piece, data + at + piece.skip);
		demux_take(d, piece.len);
		at += piece.skip + piece.len;
	}
}

static struct sums feed(const char *data, size_t size, size_t step)
{
	struct demux d = {0};
	struct sums s = {.r = 0};

	for (size_t at = 0; at < size && s.r == 0; at += step)
		feed_part(&d, &s, data + at, size - at < step ? size - at : step);
	return s;
}

static void check_frames(const char *data, size_t size)
{
	struct sums whole = feed(data, size, size + 1);

	for (size_t step = 1; step < 12; step += 3) {
		struct sums parts = feed(data, size, step);

		require(whole.r == parts.r);
		for (size_t i = 0; i < DEMUX_COUNT; i++)
			require(whole.bytes[i] == parts.bytes[i] && whole.sum[i] == parts.sum[i]);
	}
}

static void check_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	require(len < size);
	for (size_t i = 0; i < len; i++)
		require(text[i] >= ' ' && text[i] <= '~');
}

static void check_answer(const json_t *answer)
{
	struct docker_facts facts = {.cpus = 0};
	struct error err = {0};
	char message[64];

	if (docker_read_version(answer, &facts, &err) == 0) {
		require(strspn(facts.api, "0123456789.") == strlen(facts.api));
		check_text(facts.release, sizeof(facts.release));
	}
	error_clear(&err);
	if (docker_read_info(answer, NULL, &facts, &err) == 0) {
		require(facts.cpus > 0 && facts.grade < ENGINE_GRADE_COUNT);
		check_text(facts.kernel, sizeof(facts.kernel));
	}
	docker_read_message(answer, message, sizeof(message));
	check_text(message, sizeof(message));
	(void)docker_read_exit(answer);
	for (size_t i = 0; i < 4; i++)
		(void)docker_read_name(answer, i);
	(void)docker_has_volumes(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *whole = docker_parse((const char *)data, size);
	json_t *last = docker_parse_last((const char *)data, size);

	check_frames((const char *)data, size);
	check_answer(whole);
	check_answer(last);
	json_decref(whole);
	json_decref(last);
	return 0;
}
