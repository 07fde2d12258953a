/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: answers an HTTP request with a program: after its end, as a stream of events, or at once
 * with a ticket. A dialect provides an encoder. A client that leaves ends a program without a
 * session; a session's goes on, and the client can come back for its events.
 */

#include "api/op/events.h"
#include "api/op/run.h"
#include "base/buf.h"
#include "core/run/run_record.h"
#include <stdint.h>

struct http_request;

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
};

int run_reply_start(struct router *r, struct http_request *req, const struct op_run_start *start,
                    struct run_record **ret_record, struct error *err) attr_must_check;
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
