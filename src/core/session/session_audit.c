/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_audit.h"

#include <jansson.h>

#include "core/run/run_report.h"
#include "core/session/session.h"

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

/* @detail is consumed. */
static void write_event(struct audit *a, const char *action, const struct session_info *info,
                        json_t *detail)
{
	audit_write(a, &(struct audit_event){
			       .action = action,
			       .tenant = info->tenant,
			       .key_id = info->key_id,
			       .object = info->id,
			       .result = info->reason ? session_state_name(info->state) : "ok",
			       .request_id = info->request_id,
			       .detail = detail,
		       });
}

void session_audit(struct audit *a, const char *action, const struct session_info *info)
{
	json_t *detail;

	if (!a)
		return;
	detail = json_object();
	(void)json_object_set_new(detail, "mode", json_string(session_mode_name(info->mode)));
	(void)json_object_set_new(detail, "language", text_or_null(info->language));
	(void)json_object_set_new(detail, "agent_id", text_or_null(info->agent_id));
	(void)json_object_set_new(detail, "limits", run_report_limits(&info->limits));
	if (info->reason)
		(void)json_object_set_new(detail, "reason", text_or_null(info->reason));
	write_event(a, action, info, detail);
}

void session_audit_network(struct audit *a, const struct session_info *info, const char *lost,
                           const char *reason)
{
	json_t *detail;

	if (!a)
		return;
	detail = json_object();
	(void)json_object_set_new(detail, "lost", json_string(lost));
	(void)json_object_set_new(detail, "reason", json_string(reason));
	write_event(a, "session.network", info, detail);
}
