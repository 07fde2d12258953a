/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one request of an agent. MCP requests and REST requests for tools or resources embed one;
 * tools and resources work on it.
 *
 * The owner calls call_init and starts one operation (tool_start, resource_read, resource_list).
 * It ends once: with call_finish or call_fail, which call on_done, perhaps before the operation's
 * function returns; or with call_cancel, without a callback. The owner then calls call_release.
 * An operation must not touch a call that it has ended.
 *
 * On the loop only. Nothing here knows HTTP or JSON-RPC.
 */

#include "api/json/text_stream.h"
#include "api/tools/tool_args.h"
#include "base/error.h"
#include "driver/driver.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct op_file;
struct principal;
struct router;
struct session;
struct store_load;
struct tool;

struct call_events {
	void *ctx;
	/* Output as text; never after on_done. NULL: not wanted. */
	void (*on_output)(void *ctx, enum output_stream stream, const char *text, size_t len);
	/* Once. @result is borrowed and may be changed; NULL: only @failure. */
	void (*on_done)(void *ctx, json_t *result, const struct error *failure);
};

typedef void call_session_fn(struct call *call, struct session *session);

struct call {
	struct router *router;
	const struct principal *principal; /* lives as long as the identity service */
	char *request_id;                  /* owned; for logs and audit */
	struct call_events events;

	/* What the call waits for; NULL: nothing. */
	void *work;
	void (*cancel)(void *work);
	/* Of the operation; freed when the call ends. */
	void *state;
	void (*free_state)(void *state);

	/* Of a tool; see tool.h. */
	const struct tool *tool;
	struct tool_args args;
	uint64_t started_us;
	bool whole;    /* output in the result is not shortened */
	json_t *asked; /* owned: members of the result known before the run */
	struct text_stream text[OUTPUT_COUNT];
	call_session_fn *with_session; /* continues once the session was found */
};

/** call_init - copies @request_id; other members are the owner's, zero unless set. */
void call_init(struct call *call, struct router *r, const struct principal *who,
               const char *request_id);
/** call_release - frees what @call owns. */
void call_release(struct call *call);
/** call_cancel - stop its work, without a callback. */
void call_cancel(struct call *call);

/* For operations. */

/** call_finish - @result is taken. */
void call_finish(struct call *call, json_t *result);
void call_fail(struct call *call, const struct error *err);
/** call_end - with both; @result is taken. */
void call_end(struct call *call, json_t *result, const struct error *failure);
/** call_wait - call_cancel calls @cancel with @work. */
void call_wait(struct call *call, void *work, void (*cancel)(void *work));
void call_wait_store(struct call *call, struct store_load *search);
void call_wait_file(struct call *call, struct op_file *collect);
