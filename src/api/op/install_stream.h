/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an installation as events of a response: `install` with the output of the package manager,
 * then `end` with the result, or `error`. Instead of `end`, the events of the program that needed
 * the packages may follow.
 *
 * On the loop only.
 */

#include "api/json/text_stream.h"
#include "api/op/events.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_request;

struct install_stream {
	struct http_request *req;
	enum event_form form; /* NONE: no events */
	size_t max_bytes;     /* of one event */
	bool began;
	uint64_t next_id; /* of its next event */
	struct text_stream text;
};

/** install_stream_output - what the package manager printed. Nothing without a form. */
void install_stream_output(struct install_stream *s, const char *data, size_t len);
/** install_stream_end - end it with @result, which is taken. The request must not wait any more. */
void install_stream_end(struct install_stream *s, json_t *result);
/** install_stream_fail - end it with an error. @log: the last output of the manager; "": none. */
void install_stream_fail(struct install_stream *s, const struct error *err, const char *log);
/** install_failure - the body of a response without events: as of the event `error`. Owned. */
json_t *install_failure(struct http_request *req, const struct error *err, const char *log);
