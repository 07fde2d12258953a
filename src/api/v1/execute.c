/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/decode.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/query.h"
#include "api/json/report.h"
#include "api/op/install.h"
#include "api/op/language.h"
#include "api/op/run.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "core/config/config.h"
#include "core/language/runners.h"
#include "core/run/run.h"
#include "core/template/template.h"

static const char *const step_names[] = {
	[TRACE_RECEIVED] = "received", [TRACE_PARSED] = "parsed",
	[TRACE_DECIDED] = "decided",   [TRACE_ADMITTED] = "admitted",
	[TRACE_BOX] = "box",           [TRACE_SENT] = "sent",
	[TRACE_STARTED] = "started",   [TRACE_FIRST_OUTPUT] = "first_output",
	[TRACE_DONE] = "done",         [TRACE_JUDGED] = "judged",
	[TRACE_RENDERED] = "rendered",
};
static_assert(ARRAY_SIZE(step_names) == TRACE_COUNT, "every step has a name");

struct traced {
	uint64_t received_us, parsed_us;
};

/* Microseconds since the request arrived; null: step not taken. Owned. */
static json_t *view_trace(const struct traced *traced, const struct outcome *outcome)
{
	struct trace t = outcome->trace;
	json_t *j = json_object();

	t.us[TRACE_RECEIVED] = traced->received_us;
	t.us[TRACE_PARSED] = traced->parsed_us;
	t.us[TRACE_RENDERED] = clock_us();
	for (size_t i = 0; i < TRACE_COUNT; i++)
		json_set(j, step_names[i],
		         t.us[i] ? json_integer((json_int_t)(t.us[i] - t.us[TRACE_RECEIVED]))
		                 : json_null());
	return j;
}

/* To the end of an object; @value is released. */
static int add_member(struct buf *b, const char *name, json_t *value)
{
	b->len--; /* replaces the brace */
	if (buf_addf(b, ",\"%s\":", name) < 0) {
		json_decref(value);
		return -1;
	}
	return json_add(b, value) < 0 ? -1 : buf_add(b, "}", 1);
}

/* @ctx NULL: without a trace. */
static int add_result(void *ctx, struct buf *b, const struct run_record_info *run)
{
	cleanup_report struct report report = {0};

	encode_result_report(run->outcome, &report);
	if (encode_result_add(b, run->outcome, &report, NULL) < 0 ||
	    (run->cuts && add_member(b, "limits", encode_cuts(run->cuts)) < 0))
		return -1;
	if (add_member(b, "language", encode_text(run->language)) < 0)
		return -1;
	return ctx ? add_member(b, "trace", view_trace(ctx, run->outcome)) : 0;
}

static const struct run_encoder encoder = {.add_result = add_result};

struct execute_query {
	bool trace;
};

static const struct field query_rows[] = {
	{"trace", FIELD_BOOL, AT(struct execute_query, trace), .fallback = "false",
         .description = "Report the time of each step in `trace` of the result."},
	FIELDS_END,
};
const struct fields v1_execute_query = {.rows = query_rows};

/* What is left to do when the packages are there. Its request owns all it points to. */
struct execute_call {
	struct router *r;
	const struct principal *who; /* the request's */
	struct decoded_run decoded;
	struct execute_query query;
	uint64_t parsed_us;
	enum event_form form;
};

static void drop_call(void *ctx)
{
	cleanup_free struct execute_call *call = ctx;

	decoded_run_done(&call->decoded);
}

static void run_code(struct execute_call *call, struct http_request *req,
                     struct install_stream *stream)
{
	struct router *r = call->r;
	const struct op_run_start start = {.request = &call->decoded.request,
	                                   .who = call->who,
	                                   .request_id = http_request_id(req)};
	struct run_reply how = {
		.encoder = &encoder, .began = stream->began, .next_id = stream->next_id};
	struct run_record *record;
	struct error err = {0};

	if (op_run_start(r, &start, &record, &err) < 0) {
		if (stream->began)
			install_stream_fail(stream, &err, "");
		else
			reply_error(req, &err);
		return;
	}
	how.form = call->form;
	if (call->query.trace) {
		struct traced *traced = NEW(struct traced);

		*traced = (struct traced){http_received_us(req), call->parsed_us};
		how.ctx = traced;
	}
	run_reply(r, req, record, &how);
}

static void on_layer(void *ctx, struct http_request *req, struct layer *layer,
                     struct install_stream *stream)
{
	struct execute_call *call = ctx;
	struct run_request *request = &call->decoded.request;
	struct template *base = request->template;

	request->template =
		op_template_with(call->r, call->who->tenant, base, request->packages, layer);
	template_unref(base);
	run_code(call, req, stream);
	drop_call(call);
}

/* If the runner knows how. */
static void name_program(const struct router *r, struct decoded_run *decoded)
{
	const struct runner *runner = runners_find(r->parts.runners, decoded->request.language);

	if (runner && runner->asks)
		decode_name_program(decoded);
}

/* Return: as op_packages_lacking; *ret_install is borrowed from @call. */
static int plan_packages(struct execute_call *call, struct install_request *ret_install,
                         struct error *err)
{
	struct run_request *request = &call->decoded.request;
	const struct op_packages wanted = {.language = request->language,
	                                   .packages = request->packages,
	                                   .lock = request->lock,
	                                   .template = request->template};
	int lacking = op_packages_lacking(call->r, &wanted, err);

	if (lacking <= 0)
		return lacking;
	*ret_install = (struct install_request){
		.tenant = call->who->tenant,
		.key_id = call->who->key_id,
		.policy = request->policy,
		.language = request->language,
		.run = op_packages_join(call->r, &wanted, &request->packages),
		.lock = request->lock,
		.template = request->template,
		.engine = request->engine,
		.min_isolation = request->min_isolation};
	ret_install->packages = request->packages;
	return lacking;
}

static int decode_call(struct execute_call *call, struct http_request *req,
                       const struct route_args *args, struct error *err)
{
	struct run_request *request = &call->decoded.request;
	const struct decode_limits limits = {.max_code_bytes = call->r->config->max_code_bytes};
	size_t len;
	const char *body = http_body(req, &len);

	if (query_decode(req, args->query, &call->query, err) < 0 ||
	    decode_exec(body, len, &limits, &call->decoded, err) < 0 ||
	    op_language_choose(call->r, &call->decoded, call->decoded.default_language, err) < 0 ||
	    run_request_find_template(call->r->parts.templates, call->who->tenant, request, err) <
	            0)
		return -1;
	name_program(call->r, &call->decoded);
	call->form = event_form_choose(http_header(req, "Accept"), call->decoded.stream);
	call->parsed_us = clock_us();
	return 0;
}

void v1_execute(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct execute_call *call = NEW(struct execute_call);
	struct install_request install = {0};
	struct error err = {0};
	int lacking;

	call->r = r;
	call->who = args->principal;
	lacking = decode_call(call, req, args, &err) < 0 ? -1 : plan_packages(call, &install, &err);
	if (lacking > 0) {
		const struct op_install how = {
			.form = call->form, .ctx = call, .then = on_layer, .drop = drop_call};

		install.request_id = http_request_id(req);
		op_install(r, req, &install, &how);
		return;
	}
	if (lacking < 0)
		reply_error(req, &err);
	else
		run_code(call, req, &(struct install_stream){0});
	drop_call(call);
}
