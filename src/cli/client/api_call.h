/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one small request to the daemon, and the object that it answers with. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/client/endpoint.h"
#include <jansson.h>
#include <stdint.h>

struct api_call {
	const char *method;
	const char *path; /* with its query */
	const char *body; /* JSON; NULL: none */
	size_t body_len;  /* 0: that of the text */
	/* Now and then while it lasts: @sent bytes of the body have left. NULL: never. */
	void (*on_tick)(void *ctx, uint64_t sent);
	void *ctx;
};

/**
 * api_call - Return: 0 with an owned object in *ret_answer and its status in *ret_status, whatever
 * it is; or -1: there was no answer of a Millibox daemon.
 */
int api_call(const struct endpoint *endpoint, const struct api_call *call, json_t **ret_answer,
             int *ret_status, struct error *err) attr_must_check;
/** api_endpoint - where a daemon is that outlives the command: none is started for it. */
int api_endpoint(const struct endpoint_options *options, struct endpoint *ret_endpoint,
                 struct error *err) attr_must_check;
/**
 * api_path - "/api/v1/sessions/ID" and @suffix, owned; NULL (ERR_INVALID): @id can be no id, and
 * might be another path.
 */
char *api_path(const char *id, const char *suffix, struct error *err) attr_must_check;
/**
 * api_file_path - "/api/v1/sessions/ID/files/" and @path, escaped, and @query ("?stat=1" or "");
 * owned. NULL: as of api_path.
 */
char *api_file_path(const char *id, const char *path, const char *query,
                    struct error *err) attr_must_check;
/** api_escape - @text as a part of a path or of a query; slashes stay. Owned. */
char *api_escape(const char *text) attr_must_check;
