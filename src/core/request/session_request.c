/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/session_request.h"

#include "base/alloc.h"
#include "base/str.h"

void session_request_done(struct session_request *request)
{
	free(request->id);
	free(request->language);
	free(request->agent_id);
	free(request->policy);
	free(request->engine);
	free(request->template_id);
	free(request->dependencies);
	free(request->package_index_url);
	str_list_free(request->packages);
	free(request->lock);
	str_list_free(request->env);
	str_list_free(request->network_allow);
	str_list_free(request->secrets);
	str_list_free(request->mcp);
	*request = (struct session_request){0};
}

static const char *const mode_names[] = {
	[SESSION_EPHEMERAL] = "ephemeral",
	[SESSION_WORKSPACE] = "workspace",
	[SESSION_PERSISTENT] = "persistent",
};
static_assert(ARRAY_SIZE(mode_names) == SESSION_MODE_COUNT, "every mode has a name");

const char *session_mode_name(enum session_mode mode)
{
	return mode_names[mode];
}

enum session_mode session_mode_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++)
		if (str_equal(mode_names[i], name))
			return (enum session_mode)i;
	return SESSION_EPHEMERAL;
}
