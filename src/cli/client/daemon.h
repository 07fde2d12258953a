/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon of a command: a client of libmillibox, its errors as struct error and its JSON as
 * objects. A daemon that refuses a call has answered: its error object is data for the caller.
 */

#include "base/attr.h"
#include "base/error.h"
#include "client/millibox.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: not given. */
struct daemon_options {
	const char *socket;
	const char *url;
	const char *ca_file;
	const char *isolation; /* of commands that start a daemon, see cli/start_daemon.h */
};

/* A request for which millibox.h has no function of its own. */
struct daemon_call {
	const char *method;
	const char *path;                  /* with the query */
	const char *body;                  /* JSON; NULL: none */
	size_t body_len;                   /* of bytes that are not JSON; 0: @body is text */
	millibox_progress_fn *on_progress; /* of such bytes; NULL: none */
	void *ctx;
};

/** daemon_open - does not connect; messages name the options of the command line. */
struct millibox_client *daemon_open(const struct daemon_options *options) attr_must_check;
void daemon_closep(struct millibox_client **client);
#define cleanup_daemon attr_cleanup(daemon_closep)
/** daemon_require - find the daemon. Return: 0, or -1 with *err: none listens. */
int daemon_require(struct millibox_client *client, struct error *err) attr_must_check;
/** daemon_fail - the client's error of its last call. Return: always -1. */
int daemon_fail(const struct millibox_client *client, struct error *err);
/** daemon_failed_here - did the last call fail at a descriptor of ours? Return: errno, or 0. */
int daemon_failed_here(const struct millibox_client *client);
/**
 * daemon_answer - after a call that returned @r. Return: 0 with the owned answer, whose
 * *ret_status is 200, or the daemon's error object and its status; or -1 with *err: no answer.
 */
int daemon_answer(struct millibox_client *client, int r, json_t **ret_answer, int *ret_status,
                  struct error *err) attr_must_check;
/** daemon_send - Return: of millibox_call or millibox_send. */
int daemon_send(struct millibox_client *client, const struct daemon_call *call) attr_must_check;
/** daemon_ask - daemon_send and daemon_answer. */
int daemon_ask(struct millibox_client *client, const struct daemon_call *call, json_t **ret_answer,
               int *ret_status, struct error *err) attr_must_check;
/** daemon_check_id - Return: 0, or -1 (ERR_INVALID): no id of a session. */
int daemon_check_id(const char *id, struct error *err) attr_must_check;
/** daemon_session - a handle by id. Return: 0, or -1 (ERR_INVALID): it is no id. */
int daemon_session(struct millibox_client *client, const char *id,
                   struct millibox_session **ret_session, struct error *err) attr_must_check;
void daemon_session_freep(struct millibox_session **session);
#define cleanup_session attr_cleanup(daemon_session_freep)
/** daemon_session_path - "/api/v1/sessions/ID" and @suffix. Return: owned, or NULL (ERR_INVALID).
 */
char *daemon_session_path(const char *id, const char *suffix, struct error *err) attr_must_check;
/** daemon_request - with the members of @fields. Return: owned. */
struct millibox_request *daemon_request(const json_t *fields) attr_must_check;
void daemon_request_freep(struct millibox_request **request);
#define cleanup_request attr_cleanup(daemon_request_freep)
/** daemon_parse - JSON that the library returned. Return: owned, or NULL: @text is NULL. */
json_t *daemon_parse(const char *text) attr_must_check;
