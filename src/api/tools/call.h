/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one request of an agent, embedded in MCP and REST requests for tools or resources.
 *
 * The owner calls call_init and starts one operation (tool_start, resource_read, resource_list). It
 * ends once: with call_finish or call_fail, which call on_done, perhaps before the operation's
 * function returns; or with call_cancel, without a callback. The owner then calls call_release. An
 * operation must not touch a call that it has ended.
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
	/* Never after on_done. NULL: not wanted. */
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

	/* What it waits for; NULL: nothing. */
	void *work;
	void (*cancel)(void *work);
	/* The operation's; freed at the end. */
	void *state;
	void (*free_state)(void *state);

	/* Of a tool; see tool.h. */
	const struct tool *tool;
	struct tool_args args;
	uint64_t started_us;
	bool whole;     /* do not shorten output */
	bool brief;     /* for a model: see enum config_profile */
	bool malformed; /* the arguments do not fit the tool's schema */
	json_t *asked;  /* owned: known before the run */
	json_t *log;    /* owned: what a log says about the run; NULL: nothing ran */
	struct text_stream text[OUTPUT_COUNT];
	call_session_fn *with_session; /* once the session was found */
};

/** call_init - copies @request_id; other members are the owner's, zero unless set. */
void call_init(struct call *call, struct router *r, const struct principal *who,
               const char *request_id);
void call_release(struct call *call);
/** call_cancel - no callback follows. */
void call_cancel(struct call *call);

/** call_finish - @result is taken. */
void call_finish(struct call *call, json_t *result);
void call_fail(struct call *call, const struct error *err);
/** call_end - with both; @result is taken. */
void call_end(struct call *call, json_t *result, const struct error *failure);
/** call_wait - call_cancel calls @cancel with @work. */
void call_wait(struct call *call, void *work, void (*cancel)(void *work));
void call_wait_store(struct call *call, struct store_load *search);
void call_wait_file(struct call *call, struct op_file *collect);
