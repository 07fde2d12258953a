/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/view.h"

#include "api/json/json.h"
#include "api/json/report.h"
#include "api/json/view_artifact.h"
#include "api/json/view_result.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include <string.h>

#define RUNTIME_NODE "local"
#define WORKSPACE    "/workspace"
#define MIB          1048576.0

static json_t *text(const char *s)
{
	return s ? json_text(s, strlen(s)) : json_null();
}

static json_t *moment(uint64_t real_ms)
{
	char buf[40];

	if (real_ms == 0)
		return json_null();
	clock_format_utc(real_ms, buf, sizeof(buf));
	return json_string(buf);
}

static json_t *seconds(uint64_t us)
{
	if (us % USEC_PER_SEC == 0)
		return json_integer((json_int_t)(us / USEC_PER_SEC));
	return json_real((double)us / USEC_PER_SEC);
}

static json_t *resources(const struct box_limits *limits)
{
	json_t *j = json_object();
	char buf[32];

	format_cpu(limits->cpu_millicores, buf, sizeof(buf));
	json_set(j, "cpu", json_string(buf));
	format_size(limits->memory_bytes, buf, sizeof(buf));
	json_set(j, "memory", json_string(buf));
	format_size(limits->workspace_bytes, buf, sizeof(buf));
	json_set(j, "disk", json_string(buf));
	json_set(j, "max_processes", json_integer(limits->pids));
	return j;
}

static json_t *variables(char *const *env)
{
	json_t *j = json_object();
	char name[256];

	for (; env && *env; env++) {
		const char *equals = strchr(*env, '=');
		size_t len = equals ? (size_t)(equals - *env) : sizeof(name);

		if (len >= sizeof(name)) /* policy does not let such names in */
			continue;
		memcpy(name, *env, len);
		name[len] = '\0';
		json_set(j, name, text(equals + 1));
	}
	return j;
}

json_t *view_moment(uint64_t real_ms)
{
	return moment(real_ms);
}

json_t *view_variables(char *const *env)
{
	return variables(env);
}

static void set_times(json_t *j, const struct session_info *info)
{
	json_set(j, "timeout", seconds(info->idle_timeout_us));
	json_set(j, "lifetime", seconds(info->lifetime_us));
	json_set(j, "created_at", moment(info->created_ms));
	json_set(j, "updated_at", moment(info->updated_ms));
	json_set(j, "last_activity_at", moment(info->last_activity_ms));
	json_set(j, "completed_at", moment(info->ended_ms));
}

static void set_dependencies(json_t *j, const char *kept)
{
	static const char *const names[] = {
		"requested_dependencies",        "installed_dependencies",
		"dependency_install_status",     "dependency_install_error",
		"dependency_install_started_at", "dependency_install_completed_at",
	};
	cleanup_json json_t *told = kept ? json_loads(kept, 0, NULL) : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *value = json_object_get(told, names[i]);

		if (value)
			json_set(j, names[i], json_incref(value));
		else
			json_set(j, names[i], i < 2 ? json_array() : json_null());
	}
}

static json_t *session_head(const struct session_info *info)
{
	json_t *j = json_object();

	json_set(j, "session_id", json_string(info->id));
	json_set(j, "id", json_string(info->id));
	json_set(j, "status", json_string(session_state_name(info->state)));
	return j;
}

/* Why a box was lost is told in words of the host, which are not for everybody. */
static json_t *reason(const struct session_info *info)
{
	if (info->state == SESSION_FAILED)
		return json_string("its box could not be made, or was lost");
	return text(info->reason);
}

json_t *view_session(const struct session *session)
{
	struct session_info info = {0};
	json_t *j, *limits;

	session_info(session, &info);
	j = session_head(&info);
	limits = resources(&info.limits);
	json_set(j, "mode", json_string(session_mode_name(info.mode)));
	json_set(j, "agent_id", text(info.agent_id));
	json_set(j, "template_id", text(info.template_id));
	json_set(j, "language", text(info.language));
	json_set(j, "language_runtime", text(info.language));
	json_set(j, "runtime_type", text(info.driver));
	json_set(j, "runtime_node", json_string(RUNTIME_NODE));
	json_set(j, "container_id", text(info.box_id));
	json_set(j, "pod_name", json_null());
	json_set(j, "workspace_path", json_string(WORKSPACE));
	json_set(j, "resources", json_incref(limits));
	json_set(j, "resource_limit", limits);
	json_set(j, "policy", text(info.policy));
	json_set(j, "network", json_string(box_network_name(info.network)));
	json_set(j, "env_vars", variables(info.env));
	set_times(j, &info);
	set_dependencies(j, info.dependencies);
	json_set(j, "reason", reason(&info));
	json_set(j, "queued", json_integer((json_int_t)info.queued));
	json_set(j, "executions", json_integer((json_int_t)info.executions));
	return j;
}

static json_t *count_or_null(uint64_t value)
{
	return value == COUNTER_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *scaled_or_null(uint64_t value, double unit)
{
	return value == COUNTER_UNKNOWN ? json_null() : json_real((double)value / unit);
}

static uint64_t age_ms(const struct session_info *info)
{
	uint64_t until = info->ended_ms ? info->ended_ms : clock_real_ms();

	return until > info->created_ms ? until - info->created_ms : 0;
}

json_t *view_session_stats(struct session *session)
{
	struct session_info info = {0};
	struct box_counters c;
	json_t *j;

	session_info(session, &info);
	session_counters(session, &c);
	j = session_head(&info);
	json_set(j, "cpu_time_ms", scaled_or_null(c.cpu_us, USEC_PER_MS));
	json_set(j, "memory_mb", scaled_or_null(c.memory_bytes, MIB));
	json_set(j, "memory_peak_mb", scaled_or_null(c.memory_peak_bytes, MIB));
	json_set(j, "oom_kills", count_or_null(c.oom_kills));
	json_set(j, "processes_peak", count_or_null(c.pids_peak));
	json_set(j, "processes_denied", count_or_null(c.pids_denied));
	json_set(j, "queued", json_integer((json_int_t)info.queued));
	json_set(j, "executions", json_integer((json_int_t)info.executions));
	json_set(j, "uptime_seconds", json_real((double)age_ms(&info) / 1000));
	json_set(j, "resources", resources(&info.limits));
	return j;
}

const char *view_execution_status_name(const struct run_record_info *info)
{
	static const char *const names[] = {
		[RUN_RECORD_PENDING] = "pending",
		[RUN_RECORD_RUNNING] = "running",
		[RUN_RECORD_ENDED] = "crashed", /* without an outcome: there was no box to run it */
	};
	static_assert(ARRAY_SIZE(names) == RUN_RECORD_STATE_COUNT, "every state has its name");

	if (info->state == RUN_RECORD_ENDED && info->outcome)
		return exec_status_name(info->outcome->status);
	return names[info->state];
}

/* A control plane that tells the state from the result says "completed" for success. */
static const char *view_execution_state_name(const struct run_record_info *info)
{
	const char *name = view_execution_status_name(info);

	return str_equal(name, exec_status_name(EXEC_SUCCESS)) ? "completed" : name;
}

json_t *view_execution_ticket(const struct run_record *e)
{
	struct run_record_info info = {0};
	json_t *j = json_object();

	run_record_info(e, &info);
	json_set(j, "execution_id", json_string(info.id));
	json_set(j, "session_id", json_string(info.session_id));
	json_set(j, "status", json_string(view_execution_status_name(&info)));
	json_set(j, "submitted_at", moment(info.created_ms));
	json_set(j, "created_at", moment(info.created_ms));
	return j;
}

json_t *view_execution_status(const struct run_record *e)
{
	struct run_record_info info = {0};
	json_t *j = view_execution_ticket(e);

	run_record_info(e, &info);
	json_set(j, "id", json_string(info.id));
	json_set(j, "state", json_string(view_execution_state_name(&info)));
	json_set(j, "language", text(info.language));
	json_set(j, "started_at", moment(info.started_ms));
	json_set(j, "completed_at", moment(info.completed_ms));
	return j;
}

/* What is not known yet is null, not zero. */
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
	.status = EXEC_CRASHED,
};

/* A person's line: the exception, or why there is no result. */
static json_t *error_message(const struct run_record_info *info, const json_t *error)
{
	const char *name = json_string_value(json_object_get(error, "name"));
	const char *value = json_string_value(json_object_get(error, "value"));

	if (name)
		return json_sprintf("%s: %s", name, value ? value : "");
	if (!info->failure)
		return json_null();
	/* What the daemon's own parts say of each other is not for everybody. */
	return error_is_internal(info->failure) ? json_string(error_text(info->failure->code))
	                                        : text(info->failure->msg);
}

static json_t *head_of(const struct run_record_info *info)
{
	json_t *j = json_object();

	json_set(j, "execution_id", json_string(info->id));
	json_set(j, "id", json_string(info->id));
	json_set(j, "session_id", json_string(info->session_id));
	json_set(j, "status", json_string(view_execution_status_name(info)));
	return j;
}

static json_t *tail_of(const struct run_record_info *info, const struct report *report, bool brief)
{
	json_t *j = json_object();

	json_set(j, "session_reset", json_boolean(info->session_reset));
	if (info->outcome)
		json_set(j, "artifacts",
		         view_artifacts(&info->outcome->artifacts, info->session_id));
	if (!info->outcome)
		json_set(j, "execution_time", json_null());
	json_set(j, "language", text(info->language));
	json_set(j, "code",
	         info->code && !brief ? json_text(info->code, info->code_len) : json_null());
	json_set(j, "timeout", seconds(info->timeout_us));
	json_set(j, "return_value", json_incref(report->result));
	json_set(j, "error_message", error_message(info, report->error));
	json_set(j, "retry_count", json_integer(0));
	json_set(j, "created_at", moment(info->created_ms));
	json_set(j, "started_at", moment(info->started_ms));
	json_set(j, "completed_at", moment(info->completed_ms));
	return j;
}

int view_add_execution(struct buf *b, const struct run_record *e)
{
	cleanup_report struct report report = {0};
	cleanup_json json_t *head = NULL, *tail = NULL;
	struct run_record_info info = {0};
	const struct outcome *o;

	run_record_info(e, &info);
	o = info.outcome ? info.outcome : &nothing;
	view_result_report(o, &report);
	head = head_of(&info);
	tail = tail_of(&info, &report, false);
	return view_result_add(b, o, &report, &(struct view_result_extra){head, tail});
}

json_t *view_execution_brief(const struct run_record *e)
{
	cleanup_report struct report unread = {0};
	cleanup_json json_t *head = NULL, *tail = NULL;
	struct run_record_info info = {0};

	run_record_info(e, &info);
	/* A page has many of these, and each report may be megabytes of JSON from the payload:
	 * reading them would stop the loop. */
	view_result_report(&nothing, &unread);
	head = head_of(&info);
	tail = tail_of(&info, &unread, true);
	return view_result_brief(info.outcome ? info.outcome : &nothing, &unread,
	                         &(struct view_result_extra){head, tail});
}
