/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/session_log.h"

#include "core/run/run_record.h"
#include "core/session/session.h"
#include <string.h>

/* Searched for one response. */
#define LOG_EXECUTIONS 200

/* At most @bytes. */
static void keep_tail(struct buf *b, uint64_t lines, size_t bytes)
{
	size_t at = b->len;
	size_t start;

	for (uint64_t seen = 0; at > 0 && b->len - at < bytes; at--)
		if (b->data[at - 1] == '\n' && at != b->len && ++seen == lines)
			break;
	start = at;
	if (start > 0)
		memmove(b->data, b->data + start, b->len - start);
	b->len -= start;
}

/* Of a long stream the end. */
static void add_output(struct buf *b, const struct run_record *e)
{
	static const enum output_stream streams[] = {OUTPUT_STDOUT, OUTPUT_STDERR};

	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		const struct buf *printed = run_record_printed(e, streams[i]);
		size_t len = printed->len < SESSION_LOG_BYTES ? printed->len : SESSION_LOG_BYTES;

		if (len == 0)
			continue;
		(void)!buf_add(b, printed->data + (printed->len - len), len); /* fits */
		if (b->data[b->len - 1] != '\n')
			(void)!buf_add(b, "\n", 1);
	}
}

/* Oldest first, starting where enough follows. */
static void collect_output(struct run_records *all, const struct session_info *info,
                           uint64_t since_ms, struct buf *ret_log)
{
	const struct run_record *found[LOG_EXECUTIONS];
	size_t count = 0;
	size_t bytes = 0;

	while (count < LOG_EXECUTIONS && bytes < SESSION_LOG_BYTES) {
		const struct run_record *e = run_records_of(all, info->tenant, info->id, count);
		struct run_record_info run = {0};

		if (e)
			run_record_info(e, &run);
		if (!e || run.created_ms < since_ms)
			break;
		bytes += run_record_printed(e, OUTPUT_STDOUT)->len +
		         run_record_printed(e, OUTPUT_STDERR)->len;
		found[count++] = e;
	}
	while (count-- > 0)
		add_output(ret_log, found[count]);
}

void session_log_tail(struct run_records *all, const struct session_info *info, uint64_t since_ms,
                      uint64_t lines, struct buf *ret_log)
{
	if (lines > 0)
		collect_output(all, info, since_ms, ret_log);
	keep_tail(ret_log, lines, SESSION_LOG_BYTES);
}
