/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "api/op/outputs.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/config/config.h"
#include "core/run/run_record.h"
#include "core/run/run_row.h"
#include <string.h>

/*
 * Theory of operation. Output that was shortened in a result is read in pages. Offsets count bytes
 * of the text that the result was cut from: invalid UTF-8 is replaced first, so they agree with
 * those that the result names.
 */

const struct buf *tool_find_output(const struct call *call, const char *id,
                                   enum output_stream stream)
{
	const struct router_config *p = &call->router->parts;
	struct run_record *e = run_records_find(p->executions, call->principal->tenant, id);

	return e ? run_record_printed(e, stream)
	         : outputs_find(p->outputs, call->principal->tenant, id, stream);
}

/* At most @room bytes, whole characters, whole lines if the page has any. */
static size_t page_len(const char *text, size_t len, size_t room)
{
	size_t end;
	const char *line;

	if (len <= room)
		return len;
	end = utf8_cut(text, room);
	line = memrchr(text, '\n', end);
	return line ? (size_t)(line - text) + 1 : end;
}

static void finish_page(struct call *call, const struct buf *kept)
{
	size_t size, len, at;
	cleanup_free char *text = utf8_sanitize(kept->data ? kept->data : "", kept->len, &size);
	cleanup_buf struct buf b = BUF_INIT(call->router->config->mcp_text_bytes + 256);
	struct error err = {0};
	json_int_t next;
	json_t *j;

	if (call->args.offset > size) {
		(void)error_field(&err, "offset", "is beyond the end, %zu", size);
		tool_refuse(call, &err);
		return;
	}
	at = (size_t)call->args.offset;
	while (at < size && ((unsigned char)text[at] & 0xc0) == 0x80)
		at++; /* inside a character */
	len = page_len(text + at, size - at, call->router->config->mcp_text_bytes);
	j = json_object();
	json_set(j, "output", json_text(text + at, len));
	json_set(j, "offset", json_integer((json_int_t)at));
	next = (json_int_t)at + (json_int_t)len;
	json_set(j, "next_offset", at + len < size ? json_integer(next) : json_null());
	json_set(j, "size", json_integer((json_int_t)size));
	(void)!buf_add(&b, text + at, len);
	if (at + len < size)
		(void)!buf_addf(&b, "%s[bytes %zu to %zu of %zu; for more give offset %zu]\n",
		                len > 0 && text[at + len - 1] == '\n' ? "" : "\n", at, at + len,
		                size, at + len);
	tool_finish(call, b.len ? b.data : "(no output)\n", j, NULL, false);
}

static void refuse_unknown(struct call *call)
{
	struct error err = {0};

	(void)error_field(&err, "execution_id",
	                  "no execution has the id '%.64s', or its output is "
	                  "no longer kept",
	                  call->args.execution_id);
	err.code = ERR_EXECUTION_NOT_FOUND;
	tool_refuse(call, &err);
}

static void on_found(void *ctx, const struct error *err)
{
	struct call *call = ctx;
	const struct buf *kept = NULL;

	call->cancel = NULL;
	if (!err)
		kept = tool_find_output(call, call->args.execution_id, call->args.stream);
	if (kept)
		finish_page(call, kept);
	else if (err && err->code != ERR_EXECUTION_NOT_FOUND)
		tool_refuse(call, err);
	else
		refuse_unknown(call);
}

void tool_read_output(struct call *call)
{
	const struct router_config *p = &call->router->parts;
	const char *id = call->args.execution_id;
	const struct buf *kept = tool_find_output(call, id, call->args.stream);
	struct store_load *search;
	struct error err = {0};

	if (kept) {
		finish_page(call, kept);
		return;
	}
	if (!p->store) {
		refuse_unknown(call);
		return;
	}
	search = run_row_load(p->executions, call->principal->tenant, id, on_found, call, &err);
	if (search)
		call_wait_store(call, search);
	else
		tool_refuse(call, &err);
}
