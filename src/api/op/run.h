/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: runs a program for a caller; the only place in api/ that starts one: once in a new box, or
 * in a session. The caller watches the record with run_watch (core/run). A one-shot run ends with
 * its watch; a session's goes on.
 *
 * run_reply answers an HTTP request with a program: after its end, as a stream of events, or at
 * once with a ticket. A dialect provides an encoder. A client that leaves ends a program without a
 * session; a session's goes on, and the client can come back for its events.
 *
 * On the loop only.
 */

#include "api/op/events.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "core/run/run_record.h"
#include <stdint.h>

struct http_request;
struct principal;
struct router;
struct run_request;
struct session;

/* Borrowed for the call. */
struct op_run_start {
	struct session *session; /* NULL: a new box */
	const struct run_request *request;
	const struct principal *who;
	const char *request_id; /* for logs and audit */
};

/** op_run_is_paused - a result would not come until the session is resumed: tell who waits. */
bool op_run_is_paused(const struct session *session);
/**
 * op_run_start - Return: 0; -1 with *err: nothing started. A program without a session must be
 * watched before the loop goes on.
 */
int op_run_start(struct router *r, const struct op_run_start *start, struct run_record **ret_record,
                 struct error *err) attr_must_check;

/* One of both; @run has an outcome. */
struct run_encoder {
	/* The result object, for a response with status 200 and for the last event. Return: 0; -1:
	 * does not fit. */
	int (*add_result)(void *ctx, struct buf *b, const struct run_record_info *run);
	/* Not for streams. */
	void (*answer)(void *ctx, struct http_request *req, const struct run_record_info *run);
};

struct run_reply {
	const struct run_encoder *encoder;
	void *ctx;            /* the encoder's; freed with free(); may be NULL */
	enum event_form form; /* NONE: one response at the end */
	uint64_t after;       /* skip events up to this */
	uint64_t patience_us; /* NONE: 408 after this time; 0: never */
	bool announce;        /* a session: ids first, before the start */
	bool paused;          /* a session's stream: it waits until the session is resumed */
	bool past_only;       /* a session's stream: end after the events so far */
	bool began;           /* the stream has begun, with events up to @next_id */
	uint64_t next_id;
};

/** run_reply - answer @req, now or later. Without a session the program ends with the request. */
void run_reply(struct router *r, struct http_request *req, struct run_record *record,
               const struct run_reply *how);
/**
 * run_reply_ticket - the ids, once the record is persisted. For a durable request (struct
 * run_request).
 */
void run_reply_ticket(struct http_request *req, struct run_record *record, int status);
/** run_reply_record - the execution as it is; 503 if too large. */
void run_reply_record(struct router *r, struct http_request *req, const struct run_record *record);
/** run_encode_record - for sessions: the whole record. */
extern const struct run_encoder run_encode_record;
