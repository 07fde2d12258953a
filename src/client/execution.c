/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handle.h"

#include "base/alloc.h"
#include "base/str.h"
#include "client/run_call.h"
#include "json/json_dump.h"

#define LAYERS "/api/v1/packages/layers"

/* One that was checked: it could change the path. Return: as client_answer. */
static int ask_execution(struct millibox_client *client, const char *method, const char *id,
                         const char *suffix, char **ret_json)
{
	struct error err = {0};
	cleanup_free char *path = id ? api_execution_path(id, suffix, &err) : NULL;

	if (!path)
		return client_missing(client, "execution_id");
	return client_answer(client,
	                     &(struct api_call){.method = method,
	                                        .path = path,
	                                        .body = method[0] == 'P' ? "{}" : NULL},
	                     ret_json);
}

int millibox_execution_info(struct millibox_client *client, const char *execution_id,
                            char **ret_json)
{
	return ask_execution(client, "GET", execution_id, "", ret_json);
}

int millibox_execution_cancel(struct millibox_client *client, const char *execution_id)
{
	return ask_execution(client, "POST", execution_id, "/cancel", NULL);
}

int millibox_execution_list(struct millibox_session *session, const char *status, unsigned limit,
                            char **ret_json)
{
	cleanup_free char *base =
		session ? xasprintf("/api/v1/sessions/%s/executions", session->id) : NULL;
	cleanup_free char *path = base ? api_list_path(base, status, limit) : NULL;

	if (!path)
		return -1;
	return client_answer(session->client, &(struct api_call){.method = "GET", .path = path},
	                     ret_json);
}

static int follow_events(struct millibox_client *client, const char *path, const char *body,
                         const struct millibox_request *request, struct run_call *call)
{
	struct error err = {0};

	if (client_begin(client) < 0)
		return -1;
	if (error_is_set(&request->error))
		return client_end(client, -1, &request->error);
	call->stream = true;
	call->timeout_us = request->deadline_us;
	call->cancel_fd = client->cancel_fd;
	call->on_event = run_event;
	call->ctx = (void *)(uintptr_t)request;
	return client_end(client, run_send_call(client, path, body, call, &err), &err);
}

int millibox_follow(struct millibox_client *client, const char *execution_id,
                    const struct millibox_request *request, int wait,
                    struct millibox_result **ret_result)
{
	cleanup_run_call struct run_call call;
	struct error err = {0};
	cleanup_free char *path = NULL;

	run_call_init(&call);
	if (execution_id)
		path = api_execution_path(execution_id, wait ? "/events" : "/events?follow=false",
		                          &err);
	if (!client || !path || !request)
		return client_missing(client, path ? "request" : "execution_id");
	call.partial = !wait;
	call.patience_us = wait ? client->patience_us : 0;
	if (follow_events(client, path, NULL, request, &call) < 0)
		return -1;
	if (ret_result)
		*ret_result = call.result ? result_new(TAKE_PTR(call.result)) : NULL;
	return 0;
}

/* Return: 0 with *ret_json; -1: see client_end. */
static int install_at(struct millibox_client *client, const char *path,
                      const struct millibox_request *request, char **ret_json)
{
	cleanup_run_call struct run_call call;
	struct error err = {0};
	json_auto_t *fields = request ? json_copy(request->body) : NULL;
	cleanup_free char *body = NULL;

	run_call_init(&call);
	if (fields)
		(void)json_object_set_new(fields, "stream", json_true());
	body = fields ? api_body(fields, &err) : NULL;
	if (!body)
		return client_missing(client, "request");
	if (follow_events(client, path, body, request, &call) < 0)
		return -1;
	if (ret_json)
		*ret_json = json_dump_text(call.result, 0);
	return 0;
}

int millibox_install(struct millibox_client *client, const struct millibox_request *request,
                     char **ret_json)
{
	return install_at(client, LAYERS, request, ret_json);
}

int millibox_session_install(struct millibox_session *session,
                             const struct millibox_request *request, char **ret_json)
{
	cleanup_free char *path =
		session ? xasprintf("/api/v1/sessions/%s/packages", session->id) : NULL;

	return path ? install_at(session->client, path, request, ret_json) : -1;
}
