/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the handles of millibox.h from inside, and what its files share. */

#include "base/attr.h"
#include "base/error.h"
#include "client/api_call.h"
#include "client/endpoint.h"
#include "client/millibox.h"
#include "client/retry.h"
#include "client/run_call.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct millibox_client {
	char *socket, *url, *key, *ca_file; /* owned, as set; NULL: the environment's */
	uint64_t timeout_us, patience_us, busy_us;
	void (*on_busy)(void *ctx); /* see struct retry; NULL: none */
	struct endpoint endpoint;   /* url NULL: not chosen yet */
	struct http_client *kept;   /* owned; NULL: no call yet */
	int event_fd;               /* eventfd: readable after millibox_cancel */
	int cancel_fd; /* readable: stop; @event_fd, or an epoll of it and the caller's */
	char *address; /* owned: for millibox_find */
	const struct endpoint_words *words; /* NULL: the library's */
	millibox_progress_fn *on_progress;  /* NULL: none */
	void *progress_ctx;
	uint64_t progress_bytes; /* of the running transfer */
	unsigned running;        /* calls: more than one inside callbacks */
	struct error error;
	int status;         /* HTTP status of @problem; 0: none */
	json_t *problem;    /* owned: the daemon's error object; NULL: none */
	char *problem_text; /* owned; NULL: none */
	json_t *answer;     /* owned: the daemon's object of a call that succeeded; NULL: none */
	char *answer_text;  /* owned: made when it is first asked for */
};

struct millibox_request {
	json_t *body; /* owned */
	uint64_t deadline_us;
	struct error error; /* the first one */
	millibox_output_fn *on_output, *on_install;
	millibox_text_fn *on_start, *on_value;
	void *output_ctx, *install_ctx, *start_ctx, *value_ctx;
	char *text; /* owned: for millibox_request_json; NULL: not asked for */
};

struct millibox_session {
	struct millibox_client *client; /* borrowed */
	char *id;                       /* owned */
	json_t *warnings;               /* owned: of its creation; NULL: none */
};

/**
 * client_begin - forget the last error and know the daemon. Every call begins with it; client_end
 * is its counterpart.
 */
int client_begin(struct millibox_client *client) attr_must_check;
/** client_end - @err: of the call, if @r is negative. Return: @r. */
int client_end(struct millibox_client *client, int r, const struct error *err);
/** client_refuse - take the daemon's error object, which becomes the error. Return: always -1. */
int client_refuse(struct millibox_client *client, int status, json_t *problem, struct error *err);
/** client_missing - an argument is NULL or invalid. @client may be NULL. Return: always -1. */
int client_missing(struct millibox_client *client, const char *name);
/** client_fail - an error after client_end. Return: always -1. */
int client_fail(struct millibox_client *client, enum error_code code, const char *message);
/** client_seconds - Return: 0, or -EINVAL. */
int client_seconds(double seconds, uint64_t *ret_us) attr_must_check;
/** client_retry - of a call that begins now. */
struct retry client_retry(const struct millibox_client *client);
/** client_send - one request between begin and end. *ret_answer is owned; NULL: not wanted. */
int client_send(struct millibox_client *client, const struct api_call *call, json_t **ret_answer,
                struct error *err) attr_must_check;
/** client_ask - client_send with begin and end. */
int client_ask(struct millibox_client *client, const struct api_call *call,
               json_t **ret_answer) attr_must_check;
/** client_keep - for millibox_answer; takes @answer, which may be NULL. */
void client_keep(struct millibox_client *client, json_t *answer);
/** client_answer - client_ask whose answer is also given as text, unless @ret_json is NULL. */
int client_answer(struct millibox_client *client, const struct api_call *call,
                  char **ret_json) attr_must_check;
/** client_progress - for struct file_call: @ctx is the client. */
void client_progress(void *ctx, size_t bytes);
/** result_new - takes @object. */
struct millibox_result *result_new(json_t *object) attr_must_check;
/** run_at - run @request at @path. @in_session: losing the connection does not end the program. */
int run_at(struct millibox_client *client, const char *path, const struct millibox_request *request,
           bool in_session, struct millibox_result **ret_result) attr_must_check;
/** run_event - hand an event to the callbacks of @ctx, a request; for struct run_call. */
int run_event(void *ctx, const struct event *event);
/** run_send_call - send @body (NULL: GET) to @path; the errors of both kinds become the client's.
 */
int run_send_call(struct millibox_client *client, const char *path, const char *body,
                  struct run_call *call, struct error *err) attr_must_check;
