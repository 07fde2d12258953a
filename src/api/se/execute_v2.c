/* SPDX-License-Identifier: Apache-2.0 */
#include "api/se/se.h"

#include "api/json/decode.h"
#include "api/json/decode_fields.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/op/run.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/run/markers.h"
#include "core/run/run.h"
#include "http/status.h"
#include <math.h>
#include <string.h>

/*
 * Theory of operation. The second version runs a handler without a session. The HTTP status has the
 * outcome: 400 if the code is invalid, 500 if it fails.
 */

#define NOT_LOADED 1 /* exit code of a program whose handler could not be called */
#define DETAIL_MAX 4096

static const struct fields context_fields = {.rows = decode_context_rows, .flags = FIELDS_OPEN};

/* clang-format off */
const struct fields se_handler_fields = {
	.name = "SeHandler",
	.flags = FIELDS_OPEN,
	.rows = (const struct field[]){
		{"handler_code", FIELD_STRING, AT_LEN(struct decoded_run, request.code, request.code_len), .required = true, .min = 1, .check = decode_check_handler,
		 .description = "Python that defines `handler(event)` or `handler(event, context)`. Its return value is `result`."},
		HANDLER_ROWS(context_fields),
		FIELDS_END,
	},
};
/* clang-format on */

static json_t *view_metrics(const struct outcome *o, uint64_t timeout_us)
{
	json_t *j = json_object();

	json_set(j, "duration_ms", json_real((double)o->duration_us / USEC_PER_MS));
	json_set(j, "memory_peak_mb",
	         o->memory_peak_bytes == COUNTER_UNKNOWN
	                 ? json_null()
	                 : json_real(round((double)o->memory_peak_bytes / (double)MIB * 1000) /
	                             1000));
	json_set(j, "cpu_time_ms",
	         o->cpu_us == COUNTER_UNKNOWN ? json_null()
	                                      : json_real((double)o->cpu_us / USEC_PER_MS));
	json_set(j, "timeout_seconds", json_real((double)timeout_us / USEC_PER_SEC));
	json_set(j, "timed_out", json_boolean(o->status == OUTCOME_TIMEOUT));
	return j;
}

static json_t *output(const struct buf *b, bool marked)
{
	const char *text = b->data ? b->data : "";
	size_t len = b->len;
	cleanup_free char *stripped = marked ? markers_strip(text, len, &len) : NULL;

	return json_text(stripped ? stripped : text, len);
}

static json_t *view_result(const struct outcome *o, const struct report *report,
                           uint64_t timeout_us)
{
	json_t *j = json_object();

	json_set(j, "stdout", output(&o->out, true));
	json_set(j, "stderr", output(&o->err, false));
	json_set(j, "result", json_incref(report->result));
	json_set(j, "exit_code", json_integer(o->exit_code));
	json_set(j, "metrics", view_metrics(o, timeout_us));
	return j;
}

static bool is_bad_code(const struct outcome *o, const json_t *error)
{
	static const char *const names[] = {"HandlerNotFound", "SyntaxError", "IndentationError",
	                                    "TabError"};
	const char *name = json_string_value(json_object_get(error, "name"));

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
		if (o->exit_code == NOT_LOADED && str_equal(name, names[i]))
			return true;
	return false;
}

/* The exception, or else the end of stderr. */
static json_t *detail_of(const struct outcome *o, const json_t *error)
{
	const char *name = json_string_value(json_object_get(error, "name"));
	const char *value = json_string_value(json_object_get(error, "value"));
	size_t len = o->err.len < DETAIL_MAX ? o->err.len : DETAIL_MAX;

	if (name)
		return json_sprintf("%s: %s", name, value ? value : "");
	if (len > 0)
		return json_text(o->err.data + (o->err.len - len), len);
	return json_sprintf("the program ended with %d", o->exit_code);
}

static void answer_failure(struct http_request *req, const struct outcome *o,
                           const struct report *report, uint64_t timeout_us)
{
	bool bad = is_bad_code(o, report->error), late = o->status == OUTCOME_TIMEOUT;
	json_t *j = json_object(), *detail = view_result(o, report, timeout_us);

	json_set(detail, "error_code",
	         json_string(late  ? "Sandbox.ExecTimeout"
	                     : bad ? "Sandbox.InvalidParameter"
	                           : "Sandbox.ExecException"));
	json_set(detail, "description",
	         json_string(late  ? "The handler exceeded its time limit."
	                     : bad ? "The code has no handler that can be called."
	                           : "The handler failed."));
	json_set(detail, "error_detail",
	         late ? json_sprintf("no answer within %g seconds",
	                             (double)timeout_us / USEC_PER_SEC)
	              : detail_of(o, report->error));
	json_set(detail, "solution",
	         json_string(late ? "Set a longer __timeout in the event, or do less."
	                          : "Correct the code; see error_detail and stderr."));
	json_set(detail, "request_id", json_string(http_request_id(req)));
	json_set(j, "detail", detail);
	reply_json(req, bad ? HTTP_BAD_REQUEST : HTTP_INTERNAL_SERVER_ERROR, j);
}

static void answer_run(void *ctx attr_unused, struct http_request *req,
                       const struct run_record_info *run)
{
	cleanup_report struct report report = {0};

	encode_result_report(run->outcome, &report);
	if (run->outcome->status == OUTCOME_SUCCESS)
		reply_json(req, HTTP_OK, view_result(run->outcome, &report, run->timeout_us));
	else
		answer_failure(req, run->outcome, &report, run->timeout_us);
}

static const struct run_encoder encoder = {.answer = answer_run};

void se_v2_execute_code(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct decode_limits limits = {.max_code_bytes = r->config->max_code_bytes};
	cleanup_decoded_run struct decoded_run decoded = {0};
	const struct op_run_start start = {.request = &decoded.request,
	                                   .who = args->principal,
	                                   .request_id = http_request_id(req)};
	struct run_record *record;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);
	cleanup_json json_t *object = json_read_object(body, len, &err);

	if (!object ||
	    fields_decode_open(&se_handler_fields, object, &limits, args->warnings, &decoded,
	                       &err) < 0 ||
	    decode_handler_end(&decoded, &err) < 0 || op_run_start(r, &start, &record, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	run_reply(r, req, record, &(struct run_reply){.encoder = &encoder});
}
