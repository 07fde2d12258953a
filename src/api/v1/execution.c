/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/lookup.h"
#include "api/op/attach.h"
#include "api/op/language.h"
#include "api/op/listing.h"
#include "api/op/run.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/parse.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include "http/status.h"

static const char *const status_words[] = {
	"pending", "running", "success", "failed", "timeout", "crashed", "cancelled", NULL,
};
static_assert(ARRAY_SIZE(status_words) == 3 + OUTCOME_STATUS_COUNT, "every status has its word");
const struct fields v1_executions_query = QUERY_PAGE_FIELDS(status_words);

struct events_query {
	uint64_t after;
	bool follow;
};

/* clang-format off */
static const struct field sync_rows[] = {
	{"poll_interval", FIELD_SECONDS, .min = 0.1, .max = 10, .what = "a number of seconds, 0.1 to 10", .description = "Accepted for compatibility and ignored; nothing is polled."},
	{"sync_timeout", FIELD_SECONDS, AT(struct run_reply, patience_us), .min = 10, .max = 3600, .fallback = "300", .what = "a number of seconds, 10 to 3600", .description = "Seconds to wait."},
	FIELDS_END,
};

static const struct field events_rows[] = {
	{"after", FIELD_INTEGER, AT(struct events_query, after), .clamp = true, .schema = "{\"minimum\": 0, \"default\": 0}", .description = "Number of the last event that the client has."},
	{"follow", FIELD_BOOL, AT(struct events_query, follow), .fallback = "true", .description = "Whether the stream goes on until the execution ends, or ends after the events so far."},
	FIELDS_END,
};

static const struct field attach_rows[] = {
	{"after", FIELD_INTEGER, AT(struct op_attach, after), .clamp = true, .schema = "{\"minimum\": 0, \"default\": 0}", .description = "Number of the last event that the client has."},
	FIELDS_END,
};
/* clang-format on */
const struct fields v1_attach_query = {.rows = attach_rows};
const struct fields v1_sync_query = {.rows = sync_rows};
const struct fields v1_events_query = {.rows = events_rows};

/* Clients of the control plane submit handlers, also without an event. A persistent session is an
 * interpreter, too: there only the later version's path means a handler. */
static void complete_program(const struct router *r, const struct session *session,
                             struct decoded_run *decoded)
{
	const struct runner *runner;
	struct session_info info = {0};

	session_info(session, &info);
	runner =
		runners_find(r->parts.runners,
	                     decoded->request.language ? decoded->request.language : info.language);
	if (!runner || !runner->asks)
		return;
	if (decoded->needs_language || info.mode != SESSION_PERSISTENT)
		decode_offer_event(decoded);
	decode_name_program(decoded);
}

static bool is_stream(const struct http_request *req, const struct decoded_run *decoded)
{
	return event_form_choose(http_header(req, "Accept"), decoded->stream) != EVENT_FORM_NONE;
}

static int start_run(struct router *r, struct http_request *req, const struct route_args *args,
                     struct decoded_run *decoded, struct run_record **ret_record, struct error *err)
{
	bool wait = decoded->wait; /* by the route */
	const struct decode_limits limits = {.max_code_bytes = r->config->max_code_bytes,
	                                     .warnings = args->warnings};
	const struct op_run_start start = {
		.session = lookup_session(r, args, err),
		.request = &decoded->request,
		.who = args->principal,
		.request_id = http_request_id(req),
	};
	size_t len;
	const char *body = http_body(req, &len);

	if (!start.session || decode_run(body, len, &limits, decoded, err) < 0)
		return -1;
	if (!op_language_take_stated(r->parts.runners, decoded) && decoded->default_language &&
	    op_language_choose(r, decoded, decoded->default_language, err) < 0)
		return -1;
	complete_program(r, start.session, decoded);
	decoded->wait |= wait;
	if (decoded->wait && !is_stream(req, decoded) && op_run_is_paused(start.session))
		return error_set(
			err, ERR_CONFLICT, 0,
			"session %s is paused, so the result would not come: resume it with "
			"POST /api/v1/sessions/%s/resume, or send the request without 'wait'",
			args->id, args->id);
	/* Who does not wait gets only what is certain: a persisted record. */
	decoded->request.durable = !decoded->wait && !is_stream(req, decoded);
	return op_run_start(r, &start, ret_record, err);
}

static void execute_in_session(struct router *r, struct http_request *req,
                               const struct route_args *args, bool later)
{
	cleanup_decoded_run struct decoded_run decoded = {.needs_language = later};
	struct run_reply how = {.encoder = &run_encode_record, .announce = true};
	struct run_record *record;
	struct error err = {0};

	if (start_run(r, req, args, &decoded, &record, &err) < 0) {
		if (later)
			reply_invalid(req, &err, "body");
		else
			reply_error(req, &err);
		return;
	}
	if (later)
		run_record_set_later(record);
	how.form = event_form_choose(http_header(req, "Accept"), decoded.stream);
	how.paused = op_run_is_paused(lookup_session(r, args, &err));
	if (decoded.wait || how.form != EVENT_FORM_NONE) {
		run_reply(r, req, record, &how);
		return;
	}
	if (!later)
		run_record_set_spec(record);
	run_reply_ticket(req, record, later ? HTTP_CREATED : HTTP_OK);
}

void v1_session_execute(struct router *r, struct http_request *req, const struct route_args *args)
{
	execute_in_session(r, req, args, false);
}

void v1_session_submit(struct router *r, struct http_request *req, const struct route_args *args)
{
	execute_in_session(r, req, args, true);
}

void v1_session_execute_sync(struct router *r, struct http_request *req,
                             const struct route_args *args)
{
	cleanup_decoded_run struct decoded_run decoded = {.wait = true, .needs_language = true};
	struct run_reply how = {.encoder = &run_encode_record};
	struct run_record *record;
	struct error err = {0};

	if (query_decode(req, args->query, &how, &err) < 0)
		reply_invalid(req, &err, "query");
	else if (start_run(r, req, args, &decoded, &record, &err) < 0)
		reply_invalid(req, &err, "body");
	else {
		run_record_set_later(record);
		run_reply(r, req, record, &how);
	}
}

static void list_from_memory(struct run_records *all, const struct route_args *args,
                             struct query_page *page)
{
	size_t i = query_page_begin(page);
	const struct run_record *e;

	while (!query_page_is_done(page) &&
	       (e = run_records_of(all, args->principal->tenant, args->id, i++))) {
		struct run_record_info info = {0};

		run_record_info(e, &info);
		if (query_page_wants(page, encode_run_status_name(&info)))
			query_page_add(page, encode_run_brief(e));
	}
}

void v1_session_executions(struct router *r, struct http_request *req,
                           const struct route_args *args)
{
	struct query_page page = {0};
	struct error err = {0};

	if (!lookup_session(r, args, &err) || query_page(req, args->query, &page, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	if (listing_executions(r, req, args, &page))
		return;
	list_from_memory(r->parts.executions, args, &page);
	reply_json(req, HTTP_OK,
	           query_page_object(&page, "executions",
	                             run_records_count_of(r->parts.executions,
	                                                  args->principal->tenant, args->id)));
}

static struct run_record *find_latest(struct router *r, const struct route_args *args,
                                      struct error *err)
{
	struct run_record *e;

	if (!lookup_session(r, args, err))
		return NULL;
	e = run_records_of(r->parts.executions, args->principal->tenant, args->id, 0);
	if (!e)
		(void)error_set(err, ERR_EXECUTION_NOT_FOUND, 0,
		                "the session has no execution yet");
	return e;
}

/* @e NULL: reply with *err. */
static void reply_view(struct http_request *req, const struct run_record *e,
                       const struct error *err, json_t *(*view)(const struct run_record *e))
{
	if (e)
		reply_json(req, HTTP_OK, view(e));
	else
		reply_error(req, err);
}

/* The whole record; @e NULL: reply with *err. */
static void reply_record(struct router *r, struct http_request *req, const struct run_record *e,
                         const struct error *err)
{
	if (e)
		run_reply_record(r, req, e);
	else
		reply_error(req, err);
}

static void reply_result(struct router *r, struct http_request *req, const struct run_record *e,
                         struct error *err)
{
	struct run_record_info info = {0};

	if (e)
		run_record_info(e, &info);
	if (e && info.state != RUN_RECORD_ENDED) {
		e = NULL;
		(void)error_set(err, ERR_CONFLICT, 0, "the execution is %s; it has not ended",
		                encode_run_status_name(&info));
	}
	reply_record(r, req, e, err);
}

void v1_session_status(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	const struct run_record *e = find_latest(r, args, &err);

	reply_view(req, e, &err, encode_run_status);
}

void v1_session_result(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};

	reply_result(r, req, find_latest(r, args, &err), &err);
}

void v1_execution_show(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	const struct run_record *e = lookup_execution(r, args, &err);

	reply_record(r, req, e, &err);
}

void v1_execution_status(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	const struct run_record *e = lookup_execution(r, args, &err);

	reply_view(req, e, &err, encode_run_status);
}

void v1_execution_why(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	const struct run_record *e = lookup_execution(r, args, &err);

	reply_view(req, e, &err, encode_run_why);
}

void v1_execution_result(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};

	reply_result(r, req, lookup_execution(r, args, &err), &err);
}

/* Reconnecting browsers send Last-Event-ID; `after` overrides it. */
static int read_after(const struct http_request *req, const struct route_args *args,
                      struct run_reply *how, struct error *err)
{
	const char *last = http_header(req, "Last-Event-ID");
	struct events_query query = {0};

	if (last && parse_u64(last, &query.after) < 0)
		return error_field(err, "Last-Event-ID", "must be the id of an event");
	if (query_decode(req, args->query, &query, err) < 0)
		return -1;
	how->after = query.after;
	how->past_only = !query.follow;
	return 0;
}

void v1_execution_events(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct run_reply how = {.encoder = &run_encode_record};
	struct error err = {0};
	struct run_record *e = lookup_execution(r, args, &err);

	if (!e || read_after(req, args, &how, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	how.form = event_form_choose(http_header(req, "Accept"), true);
	run_reply(r, req, e, &how);
}

void v1_execution_cancel(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct error err = {0};
	struct run_record *e = lookup_execution(r, args, &err);

	if (e && run_record_cancel(e, &err) < 0)
		e = NULL;
	else if (e)
		/* The end of this run may start others, which drop the record. */
		e = lookup_execution(r, args, &err);
	/* A queued one must not run after all if the daemon is killed now. */
	if (e)
		durable_reply_ended(req, e, HTTP_OK, encode_run_status(e));
	else
		reply_error(req, &err);
}

void v1_execution_stdin(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_decoded_input struct decoded_input input = {0};
	struct error err = {0};
	struct run_record *e = lookup_execution(r, args, &err);
	size_t len;
	const char *body = http_body(req, &len);

	if (e &&
	    (decode_input(body, len, &input, &err) < 0 ||
	     run_record_stdin(e, input.data ? input.data : "", input.len, input.end, &err) < 0))
		e = NULL;
	reply_view(req, e, &err, encode_run_status);
}

void v1_execution_resize(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct decoded_resize size = {0};
	struct error err = {0};
	struct run_record *e = lookup_execution(r, args, &err);
	size_t len;
	const char *body = http_body(req, &len);

	if (e && (decode_resize(body, len, &size, &err) < 0 ||
	          run_record_resize(e, (uint16_t)size.rows, (uint16_t)size.cols, &err) < 0))
		e = NULL;
	reply_view(req, e, &err, encode_run_status);
}

void v1_execution_attach(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct op_attach what = {.execution_id = args->id, .who = args->principal};
	struct error err = {0};

	if (!lookup_execution(r, args, &err) || query_decode(req, args->query, &what, &err) < 0)
		reply_error(req, &err);
	else
		op_attach(r, req, &what);
}
