/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "client/transport.h"
#include "http/status.h"
#include "json/json_dump.h"

#define ID_MAX 64

static const struct endpoint_words words = {
	.both = "give --socket or --url, not both",
	.untrusted = "give the certificate of its signer with --ca-file",
	.unreached = "start milliboxd there, or omit --socket and --url, and MILLIBOX_SOCKET and "
		     "MILLIBOX_URL in the environment",
	.missing = "start one with 'millibox up -d', or give --socket or --url",
};

static void tell_busy(void *ctx attr_unused)
{
	if (isatty(STDERR_FILENO))
		(void)fputs("millibox: the daemon is busy: waiting for a turn (Ctrl-C gives up)\n",
		            stderr);
}

struct millibox_client *daemon_open(const struct daemon_options *options)
{
	struct millibox_client *client = millibox_client_new();

	transport_set_words(client, &words);
	transport_on_busy(client, tell_busy);
	if (options->socket)
		(void)millibox_set_socket(client, options->socket);
	if (options->url)
		(void)millibox_set_url(client, options->url);
	if (options->ca_file)
		(void)millibox_set_ca_file(client, options->ca_file);
	/* Ctrl-C ends the wait; the user learns that a connection broke. */
	(void)millibox_set_timeout(client, 0);
	(void)millibox_set_reattach(client, 0);
	return client;
}

void daemon_closep(struct millibox_client **client)
{
	millibox_client_free(*client);
}

void daemon_session_freep(struct millibox_session **session)
{
	millibox_session_free(*session);
}

void daemon_request_freep(struct millibox_request **request)
{
	millibox_request_free(*request);
}

int daemon_require(struct millibox_client *client, struct error *err)
{
	return transport_endpoint(client) ? 0 : daemon_fail(client, err);
}

int daemon_fail(const struct millibox_client *client, struct error *err)
{
	const char *text = millibox_error_code(client);
	enum error_code code = ERR_NONE + 1;

	while (code < ERR_COUNT && !str_equal(text, error_text(code)))
		code++;
	error_clear(err);
	return error_set(err, code < ERR_COUNT ? code : ERR_SYSTEM, millibox_error_errno(client),
	                 "%s", millibox_error_message(client));
}

int daemon_failed_here(const struct millibox_client *client)
{
	return str_equal(millibox_error_code(client), error_text(ERR_SYSTEM))
	               ? millibox_error_errno(client)
	               : 0;
}

json_t *daemon_parse(const char *text)
{
	return text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
}

int daemon_answer(struct millibox_client *client, int r, json_t **ret_answer, int *ret_status,
                  struct error *err)
{
	const char *text = r < 0 ? millibox_error_json(client) : millibox_answer(client);
	json_t *answer = daemon_parse(text);

	if (!answer && r < 0)
		return daemon_fail(client, err);
	if (!answer)
		return error_set(err, ERR_PROTOCOL, 0, "the daemon's response is no JSON");
	*ret_answer = answer;
	*ret_status = r < 0 ? millibox_error_status(client) : HTTP_OK;
	return 0;
}

int daemon_send(struct millibox_client *client, const struct daemon_call *call)
{
	(void)millibox_set_progress(client, call->on_progress, call->ctx);
	if (!call->body_len)
		return millibox_call(client, call->method, call->path, call->body, NULL);
	return millibox_send(client, call->method, call->path, call->body, call->body_len, NULL);
}

int daemon_ask(struct millibox_client *client, const struct daemon_call *call, json_t **ret_answer,
               int *ret_status, struct error *err)
{
	return daemon_answer(client, daemon_send(client, call), ret_answer, ret_status, err);
}

int daemon_check_id(const char *id, struct error *err)
{
	if (id_is_valid(id, ID_MAX))
		return 0;
	return error_set(err, ERR_INVALID, 0, "'%s' is not a valid session id", id);
}

int daemon_session(struct millibox_client *client, const char *id,
                   struct millibox_session **ret_session, struct error *err)
{
	if (daemon_check_id(id, err) < 0)
		return -1;
	return millibox_session_open(client, id, ret_session) < 0 ? daemon_fail(client, err) : 0;
}

char *daemon_session_path(const char *id, const char *suffix, struct error *err)
{
	return daemon_check_id(id, err) < 0 ? NULL : xasprintf("/api/v1/sessions/%s%s", id, suffix);
}

struct millibox_request *daemon_request(const json_t *fields)
{
	struct millibox_request *request = millibox_request_new(NULL);
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)fields, name, value) {
		cleanup_free char *text = json_dump_text(value, JSON_ENCODE_ANY);

		(void)millibox_request_set_json(request, name, text);
	}
	return request;
}
