/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/install_stream.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "http/server.h"
#include "http/status.h"
#include <string.h>

/* Takes @value. Return: -1: too large. */
static int send_event(struct install_stream *s, const char *name, const char *key, json_t *value)
{
	cleanup_buf struct buf b = BUF_INIT(s->max_bytes);
	const struct event event = {
		.form = s->form, .name = name, .id = s->next_id, .has_id = true, .key = key};

	if (!s->began)
		http_stream_begin(s->req, HTTP_OK, event_form_type(s->form));
	s->began = true;
	if (event_open(&b, &event) < 0) {
		json_decref(value);
		return -1;
	}
	if (json_add(&b, value) < 0 || event_close(&b, s->form) < 0)
		return -1;
	s->next_id++;
	(void)!http_stream_write(s->req, b.data, b.len); /* on_left follows a failure */
	return 0;
}

/* The last event: without it a client would wait for the end. */
static void end_with(struct install_stream *s, const char *name, const char *key, json_t *value)
{
	if (send_event(s, name, key, value) < 0)
		http_stream_abort(s->req);
	else
		http_stream_end(s->req);
}

void install_stream_output(struct install_stream *s, const char *data, size_t len)
{
	cleanup_free char *text = NULL;

	if (s->form == EVENT_FORM_NONE)
		return;
	text = text_stream_feed(&s->text, data, len, &len);
	if (len > 0)
		(void)!send_event(s, "install", "data", json_text(text, len));
}

void install_stream_end(struct install_stream *s, json_t *result)
{
	end_with(s, "end", "result", result);
}

json_t *install_failure(struct http_request *req, const struct error *err, const char *log)
{
	json_t *body = reply_error_of(req, err);

	if (*log)
		json_set(body, "log", json_text(log, strlen(log)));
	return body;
}

void install_stream_fail(struct install_stream *s, const struct error *err, const char *log)
{
	end_with(s, "error", "error", install_failure(s->req, err, log));
}
