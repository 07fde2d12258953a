/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handle.h"

#include "base/alloc.h"
#include "json/json_dump.h"

/* Takes @info, the daemon's object of a session. */
static int take_session(struct millibox_client *client, json_t *info,
                        struct millibox_session **ret_session, struct error *err)
{
	const char *id = json_string_value(json_object_get(info, "session_id"));
	struct millibox_session *session;

	if (!id) {
		json_decref(info);
		return error_set(err, ERR_PROTOCOL, 0, "the daemon's response has no session id");
	}
	session = NEW(struct millibox_session);
	session->client = client;
	session->id = xstrdup(id);
	session->warnings = json_incref(json_object_get(info, "warnings"));
	json_decref(info);
	*ret_session = session;
	return 0;
}

static int create_session(struct millibox_client *client, const struct millibox_request *request,
                          struct millibox_session **ret_session, struct error *err)
{
	json_auto_t *fields = json_copy(request->body);
	cleanup_free char *body = NULL;
	struct api_call call = {.method = "POST", .path = "/api/v1/sessions"};
	json_t *info = NULL;

	/* The API's default keeps files, not variables. */
	if (!json_object_get(fields, "mode"))
		json_object_set_new(fields, "mode", json_string("persistent"));
	call.body = body = api_body(fields, err);
	if (!body || client_send(client, &call, &info, err) < 0)
		return -1;
	return take_session(client, info, ret_session, err);
}

int millibox_session_create(struct millibox_client *client, const struct millibox_request *request,
                            struct millibox_session **ret_session)
{
	struct error err = {0};
	struct millibox_request *empty = NULL;
	int r;

	if (!ret_session)
		return client_missing(client, "ret_session");
	if (client_begin(client) < 0)
		return -1;
	if (request && error_is_set(&request->error))
		return client_end(client, -1, &request->error);
	if (!request)
		request = empty = millibox_request_new(NULL);
	r = create_session(client, request, ret_session, &err);
	millibox_request_free(empty);
	return client_end(client, r, &err);
}

int millibox_session_attach(struct millibox_client *client, const char *id,
                            struct millibox_session **ret_session)
{
	struct error err = {0};
	cleanup_free char *path = id && ret_session ? api_path(id, "", &err) : NULL;
	json_t *info = NULL;
	int r;

	if (!path)
		return client_missing(client, ret_session ? "id" : "ret_session");
	if (client_begin(client) < 0)
		return -1;
	r = client_send(client, &(struct api_call){.method = "GET", .path = path}, &info, &err);
	if (r == 0)
		r = take_session(client, info, ret_session, &err);
	return client_end(client, r, &err);
}

int millibox_session_open(struct millibox_client *client, const char *id,
                          struct millibox_session **ret_session)
{
	struct error err = {0};
	cleanup_free char *path = id && ret_session ? api_path(id, "", &err) : NULL;

	if (!client || !path)
		return client_missing(client, ret_session ? "id" : "ret_session");
	*ret_session = NEW(struct millibox_session);
	(*ret_session)->client = client;
	(*ret_session)->id = xstrdup(id);
	return 0;
}

int millibox_session_list(struct millibox_client *client, const char *state, unsigned limit,
                          char **ret_json)
{
	cleanup_free char *path = api_list_path("/api/v1/sessions", state, limit);

	return client_answer(client, &(struct api_call){.method = "GET", .path = path}, ret_json);
}

void millibox_session_free(struct millibox_session *session)
{
	if (!session)
		return;
	json_decref(session->warnings);
	free(session->id);
	free(session);
}

const char *millibox_session_warning(const struct millibox_session *session, size_t index)
{
	return session ? json_string_value(json_array_get(session->warnings, index)) : NULL;
}

const char *millibox_session_id(const struct millibox_session *session)
{
	return session ? session->id : "";
}

/* Takes @path. */
static int ask_at(struct millibox_session *session, const char *method, char *path,
                  json_t **ret_answer)
{
	cleanup_free char *owned = path;
	const struct api_call call = {
		.method = method, .path = owned, .body = method[0] == 'P' ? "{}" : NULL};

	return client_ask(session->client, &call, ret_answer);
}

static int act_on(struct millibox_session *session, const char *method, const char *suffix)
{
	if (!session)
		return -1;
	return ask_at(session, method, xasprintf("/api/v1/sessions/%s%s", session->id, suffix),
	              NULL);
}

int millibox_session_info(struct millibox_session *session, char **ret_json)
{
	json_auto_t *info = NULL;

	if (!session || !ret_json)
		return session ? client_missing(session->client, "ret_json") : -1;
	if (ask_at(session, "GET", xasprintf("/api/v1/sessions/%s", session->id), &info) < 0)
		return -1;
	*ret_json = json_dump_text(info, 0);
	return 0;
}

int millibox_session_run(struct millibox_session *session, const struct millibox_request *request,
                         struct millibox_result **ret_result)
{
	cleanup_free char *path = NULL;

	if (!session)
		return -1;
	if (!request || !ret_result)
		return client_missing(session->client, request ? "ret_result" : "request");
	path = xasprintf("/api/v1/sessions/%s/execute", session->id);
	return run_at(session->client, path, request, true, ret_result);
}

int millibox_session_start(struct millibox_session *session, const struct millibox_request *request,
                           char **ret_id)
{
	struct millibox_client *client = session ? session->client : NULL;
	cleanup_free char *path = NULL, *body = NULL;
	struct error err = {0};
	json_auto_t *answer = NULL;
	const char *id;

	if (!request || !ret_id)
		return client_missing(client, request ? "ret_id" : "request");
	if (!session || client_begin(client) < 0)
		return -1;
	if (error_is_set(&request->error))
		return client_end(client, -1, &request->error);
	path = xasprintf("/api/v1/sessions/%s/execute", session->id);
	body = api_body(request->body, &err);
	if (!body ||
	    client_send(client, &(struct api_call){.method = "POST", .path = path, .body = body},
	                &answer, &err) < 0)
		return client_end(client, -1, &err);
	id = json_string_value(json_object_get(answer, "execution_id"));
	if (!id)
		return client_end(client,
		                  error_set(&err, ERR_PROTOCOL, 0,
		                            "the daemon's response has no execution id"),
		                  &err);
	*ret_id = xstrdup(id);
	return client_end(client, 0, &err);
}

int millibox_session_interrupt(struct millibox_session *session)
{
	return act_on(session, "POST", "/interrupt");
}

int millibox_session_pause(struct millibox_session *session)
{
	return act_on(session, "POST", "/pause");
}

int millibox_session_resume(struct millibox_session *session)
{
	return act_on(session, "POST", "/resume");
}

int millibox_session_restart(struct millibox_session *session)
{
	/* A session is a sandbox of another dialect, which has this operation. */
	return session ? ask_at(session, "POST",
	                        xasprintf("/api/v1/sandboxes/%s/restart", session->id), NULL)
	               : -1;
}

int millibox_session_terminate(struct millibox_session *session)
{
	return act_on(session, "POST", "/terminate");
}

int millibox_session_delete(struct millibox_session *session)
{
	return act_on(session, "DELETE", "");
}
