/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a request that follows an execution: as events from a number on, or only for its end. A
 * client that leaves ends the following and not the execution: it can come back.
 */

#include "api/op/events.h"
#include <stddef.h>
#include <stdint.h>

struct run_record;
struct http_request;
struct loop;

struct follow_config {
	struct loop *loop;
	enum event_form form; /* NONE: one answer, at the end */
	uint64_t after;       /* events up to this one the client has */
	size_t max_bytes;     /* of one event or answer */
	uint64_t patience_us; /* without a form: answer 408 after this; 0: wait for ever */
	bool announce;        /* begin with the execution's ids, before anything happened */
};

/** follow_answer - the execution as it is now; 503 where @max_bytes are too few for it. */
void follow_answer(struct http_request *req, const struct run_record *e, size_t max_bytes);
/** follow - answers @req, now or later. */
void follow(struct http_request *req, struct run_record *e, const struct follow_config *config);
