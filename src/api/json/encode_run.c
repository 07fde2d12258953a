/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/encode_file.h"
#include "api/json/encode_result.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "base/str.h"

const char *encode_run_status_name(const struct run_record_info *info)
{
	static const char *const names[] = {
		[RUN_RECORD_PENDING] = "pending",
		[RUN_RECORD_RUNNING] = "running",
		[RUN_RECORD_ENDED] = "crashed", /* no outcome: no box to run it */
	};
	static_assert(ARRAY_SIZE(names) == RUN_RECORD_STATE_COUNT, "every state has its name");

	if (info->state == RUN_RECORD_ENDED && info->outcome)
		return outcome_status_name(info->outcome->status);
	return names[info->state];
}

/* Clients that read `state` expect "completed" for success. */
static const char *state_name(const struct run_record_info *info)
{
	const char *name = encode_run_status_name(info);

	return str_equal(name, outcome_status_name(OUTCOME_SUCCESS)) ? "completed" : name;
}

json_t *encode_run_ticket(const struct run_record *e)
{
	struct run_record_info info = {0};
	json_t *j = json_object();

	run_record_info(e, &info);
	json_set(j, "execution_id", json_string(info.id));
	json_set(j, "session_id", json_string(info.session_id));
	json_set(j, "status", json_string(encode_run_status_name(&info)));
	json_set(j, "submitted_at", encode_moment(info.created_ms));
	json_set(j, "created_at", encode_moment(info.created_ms));
	return j;
}

json_t *encode_run_status(const struct run_record *e)
{
	struct run_record_info info = {0};
	json_t *j = encode_run_ticket(e);

	run_record_info(e, &info);
	json_set(j, "id", json_string(info.id));
	json_set(j, "state", json_string(state_name(&info)));
	json_set(j, "language", encode_text(info.language));
	json_set(j, "started_at", encode_moment(info.started_ms));
	json_set(j, "completed_at", encode_moment(info.completed_ms));
	return j;
}

/* Unknown values are null, not zero. */
static const struct outcome nothing = {
	.duration_us = COUNTER_UNKNOWN,
	.start_us = COUNTER_UNKNOWN,
	.queue_us = COUNTER_UNKNOWN,
	.cpu_us = COUNTER_UNKNOWN,
	.memory_peak_bytes = COUNTER_UNKNOWN,
	.processes_peak = COUNTER_UNKNOWN,
	.read_bytes = COUNTER_UNKNOWN,
	.write_bytes = COUNTER_UNKNOWN,
	.stdout_bytes = COUNTER_UNKNOWN,
	.stderr_bytes = COUNTER_UNKNOWN,
	.status = OUTCOME_CRASHED,
};

/* One line: the exception, or why there is no result. */
static json_t *error_message(const struct run_record_info *info, const json_t *error)
{
	const char *name = json_string_value(json_object_get(error, "name"));
	const char *value = json_string_value(json_object_get(error, "value"));

	if (name)
		return json_sprintf("%s: %s", name, value ? value : "");
	if (!info->failure)
		return json_null();
	return error_is_internal(info->failure) ? json_string(error_text(info->failure->code))
	                                        : encode_text(info->failure->msg);
}

static json_t *head_of(const struct run_record_info *info)
{
	json_t *j = json_object();

	json_set(j, "execution_id", json_string(info->id));
	json_set(j, "id", json_string(info->id));
	json_set(j, "session_id", json_string(info->session_id));
	json_set(j, "status", json_string(encode_run_status_name(info)));
	return j;
}

static json_t *tail_of(const struct run_record_info *info, const struct report *report, bool brief)
{
	json_t *j = json_object();

	json_set(j, "session_reset", json_boolean(info->session_reset));
	if (info->outcome)
		json_set(j, "artifacts",
		         encode_artifacts(&info->outcome->artifacts, info->session_id));
	if (!info->outcome)
		json_set(j, "execution_time", json_null());
	json_set(j, "language", encode_text(info->language));
	json_set(j, "code",
	         info->code && !brief ? json_text(info->code, info->code_len) : json_null());
	json_set(j, "timeout", encode_seconds(info->timeout_us));
	json_set(j, "return_value", json_incref(report->result));
	json_set(j, "error_message", error_message(info, report->error));
	json_set(j, "retry_count", json_integer(0));
	json_set(j, "created_at", encode_moment(info->created_ms));
	json_set(j, "started_at", encode_moment(info->started_ms));
	json_set(j, "completed_at", encode_moment(info->completed_ms));
	return j;
}

int encode_run_add(struct buf *b, const struct run_record_info *info)
{
	cleanup_report struct report report = {0};
	cleanup_json json_t *head = NULL, *tail = NULL;
	const struct outcome *o = info->outcome ? info->outcome : &nothing;

	encode_result_report(o, &report);
	head = head_of(info);
	tail = tail_of(info, &report, false);
	return encode_result_add(b, o, &report, &(struct encode_result_extra){head, tail});
}

json_t *encode_run_brief(const struct run_record *e)
{
	cleanup_report struct report unread = {0};
	cleanup_json json_t *head = NULL, *tail = NULL;
	struct run_record_info info = {0};

	run_record_info(e, &info);
	/* Parsing the reports of a page, perhaps megabytes of untrusted JSON each, would block the
	 * loop. */
	encode_result_report(&nothing, &unread);
	head = head_of(&info);
	tail = tail_of(&info, &unread, true);
	return encode_result_brief(info.outcome ? info.outcome : &nothing, &unread,
	                           &(struct encode_result_extra){head, tail});
}
