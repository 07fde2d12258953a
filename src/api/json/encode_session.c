/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/json.h"
#include "base/clock.h"
#include "base/size.h"
#include "base/str.h"
#include "core/policy/policy.h"
#include "core/run/outcome.h"
#include <string.h>

#define RUNTIME_NODE "local"
#define WORKSPACE    "/workspace"

static void set_dependencies(json_t *j, const char *kept)
{
	static const char *const names[] = {
		"requested_dependencies",        "installed_dependencies",
		"dependency_install_status",     "dependency_install_error",
		"dependency_install_started_at", "dependency_install_completed_at",
		"python_package_index_url",
	};
	cleanup_json json_t *members = kept ? json_loads(kept, 0, NULL) : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *value = json_object_get(members, names[i]);

		if (value)
			json_set(j, names[i], json_incref(value));
		else
			json_set(j, names[i], i < 2 ? json_array() : json_null());
	}
	/* Nothing to install. */
	if (!members)
		json_set(j, "dependency_install_status", json_string("completed"));
}

/* Clients of the control plane wait for "running"; `state` tells idle sessions apart. */
const char *encode_session_status(const struct session_info *info)
{
	return session_state_name(info->state == SESSION_READY ? SESSION_RUNNING : info->state);
}

const char *encode_session_container(const struct session_info *info)
{
	bool started = info->state == SESSION_READY || info->state == SESSION_RUNNING;

	if (info->box_id)
		return info->box_id;
	return started && info->mode == SESSION_EPHEMERAL ? info->id : NULL;
}

static json_t *session_head(const struct session_info *info)
{
	json_t *j = json_object();

	json_set(j, "session_id", json_string(info->id));
	json_set(j, "id", json_string(info->id));
	json_set(j, "status", json_string(encode_session_status(info)));
	json_set(j, "state", json_string(session_state_name(info->state)));
	return j;
}

/* Of a failed session. Reasons that are not known here may name parts of the host. */
static const char *failure_text(const json_t *session, const char *reason)
{
	const char *missing =
		json_string_value(json_object_get(session, "dependency_install_error"));

	if (reason && missing && str_equal(reason, missing))
		return missing;
	if (reason && str_equal(reason, OUTCOME_HOST_MEMORY_REASON))
		return OUTCOME_HOST_MEMORY_REASON;
	if (reason && str_has_prefix(reason, POLICY_NO_ENGINE))
		return reason;
	if (reason && str_has_prefix(reason, DRIVER_LOSS))
		return "its engine has ended, and its box with it";
	return "its box could not be made, or was lost";
}

static void set_reason(json_t *j, const struct session_info *info)
{
	const char *text = failure_text(j, info->reason);

	if (info->state != SESSION_FAILED) {
		json_set(j, "reason", encode_text(info->reason));
		return;
	}
	json_set(j, "reason", encode_text(text));
	json_set(j, "error", encode_text(text));
	json_set(j, "message", encode_text(text));
}

json_t *encode_session(const struct session *session)
{
	struct session_info info = {0};
	json_t *j, *limits;

	session_info(session, &info);
	j = session_head(&info);
	limits = encode_resources(&info.limits);
	json_set(j, "mode", json_string(session_mode_name(info.mode)));
	json_set(j, "agent_id", encode_text(info.agent_id));
	json_set(j, "template_id", encode_text(info.template_id));
	json_set(j, "language", encode_text(info.language));
	json_set(j, "language_runtime", encode_text(info.language));
	json_set(j, "engine", encode_text(info.engine));
	json_set(j, "grade", json_string(box_grade_name(info.grade)));
	json_set(j, "runtime_type", encode_text(info.engine));
	json_set(j, "runtime_node", json_string(RUNTIME_NODE));
	json_set(j, "container_id", encode_text(encode_session_container(&info)));
	json_set(j, "pod_name", json_null());
	json_set(j, "workspace_path", json_string(WORKSPACE));
	json_set(j, "resources", json_incref(limits));
	json_set(j, "resource_limit", limits);
	json_set(j, "policy", encode_text(info.policy));
	json_set(j, "network", json_string(box_network_name(info.network)));
	json_set(j, "network_allow",
	         info.network_allow ? encode_texts(info.network_allow) : json_null());
	json_set(j, "secrets", encode_texts(info.secrets));
	json_set(j, "mcp", encode_texts(info.mcp));
	json_set(j, "env_vars", encode_variables(info.env));
	json_set(j, "timeout", encode_seconds(info.idle_timeout_us));
	json_set(j, "lifetime", encode_seconds(info.lifetime_us));
	json_set(j, "created_at", encode_moment(info.created_ms));
	json_set(j, "updated_at", encode_moment(info.updated_ms));
	json_set(j, "last_activity_at", encode_moment(info.last_activity_ms));
	json_set(j, "completed_at", encode_moment(info.ended_ms));
	set_dependencies(j, info.dependencies);
	set_reason(j, &info);
	json_set(j, "queued", json_integer((json_int_t)info.queued));
	json_set(j, "background", json_integer((json_int_t)info.background));
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

json_t *encode_session_stats(struct session *session)
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
	json_set(j, "background", json_integer((json_int_t)info.background));
	json_set(j, "executions", json_integer((json_int_t)info.executions));
	json_set(j, "uptime_seconds", json_real((double)age_ms(&info) / 1000));
	json_set(j, "resources", encode_resources(&info.limits));
	return j;
}
