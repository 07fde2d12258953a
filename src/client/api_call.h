/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one small request to the daemon, and the JSON object of its response. */

#include "base/attr.h"
#include "base/error.h"
#include "client/endpoint.h"
#include <jansson.h>
#include <stdint.h>

struct api_call {
	const char *method;
	const char *path; /* with the query */
	const char *body; /* JSON; NULL: none */
	size_t body_len;  /* 0: strlen(body) */
	/* Four times a second, with the bytes of the body sent so far. NULL: never. */
	void (*on_tick)(void *ctx, uint64_t sent);
	void *ctx;
	uint64_t timeout_us; /* 0: none */
	int cancel_fd;       /* readable: stop; 0: none */
};

/**
 * api_call - Return: 0 with an owned object in *ret_answer and any HTTP status, or -1: no response
 * from a Millibox daemon.
 */
int api_call(const struct endpoint *endpoint, const struct api_call *call, json_t **ret_answer,
             int *ret_status, struct error *err) attr_must_check;
/** api_ready - GET /readyz within @timeout_us. Return: 0 with the HTTP status, or -1. */
int api_ready(const struct endpoint *endpoint, uint64_t timeout_us, int *ret_status,
              struct error *err) attr_must_check;
/** api_endpoint - endpoint_find for a caller that cannot start its own daemon. */
int api_endpoint(const struct endpoint_options *options, struct endpoint *ret_endpoint,
                 struct error *err) attr_must_check;
/**
 * api_path - "/api/v1/sessions/ID" and @suffix. Return: owned, or NULL (ERR_INVALID): @id is
 * invalid and could change the path.
 */
char *api_path(const char *id, const char *suffix, struct error *err) attr_must_check;
/** api_file_path - "/api/v1/sessions/ID/files/PATH" and @query. Return: as api_path. */
char *api_file_path(const char *id, const char *path, const char *query,
                    struct error *err) attr_must_check;
/** api_list_path - @path with the query of a list; NULL and 0: not given. Return: owned. */
char *api_list_path(const char *path, const char *status, unsigned limit) attr_must_check;
/** api_execution_path - "/api/v1/executions/ID" and @suffix. Return: as api_path. */
char *api_execution_path(const char *id, const char *suffix, struct error *err) attr_must_check;
/** api_escape - percent-encode all but slashes. Return: owned. */
char *api_escape(const char *text) attr_must_check;
/** api_body - the text of @object. Return: owned, or NULL with *err. */
char *api_body(const json_t *object, struct error *err) attr_must_check;
/** api_parse_object - Return: owned, or NULL (ERR_PROTOCOL). */
json_t *api_parse_object(const char *text, size_t len, int status,
                         struct error *err) attr_must_check;
