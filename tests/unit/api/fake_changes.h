/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the fake sessions of fake_sessions.h let be changed: nothing comes of it. */

#include "core/session/session.h"

void session_set_dependencies(struct session *session, const char *text)
{
	(void)session;
	(void)text;
}

void session_set_notes(struct session *session, const char *text)
{
	(void)session;
	(void)text;
}

int session_set_env(struct session *session, char *const *env, struct error *err)
{
	(void)session;
	(void)env;
	(void)err;
	return 0;
}

size_t session_history(const struct session *session,
                       struct session_step ret_steps[SESSION_HISTORY_MAX])
{
	ret_steps[0] = (struct session_step){.state = session->state};
	return 1;
}

int session_restart(struct session *session, struct error *err)
{
	(void)session;
	(void)err;
	return 0;
}
