/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: bodies about sessions and their executions; see decode.h. Pure. */

#include "api/json/decode.h"
#include "core/session/session.h"

/* Seconds. */
#define DECODE_RUN_MAX     3600
#define DECODE_SESSION_MAX (7 * 24 * 3600)

extern const struct fields decode_session_fields, decode_install_fields, decode_run_fields,
	decode_input_fields;

/** decode_session - body of POST /sessions; the caller releases *ret_request in any case. */
int decode_session(const char *body, size_t len, struct session_request *ret_request,
                   struct error *err) attr_must_check;
/** decode_session_object - the same from a parsed body. */
int decode_session_object(const json_t *object, struct session_request *ret_request,
                          struct error *err) attr_must_check;
#define cleanup_session_request attr_cleanup(session_request_done)

/** decode_install - body of POST /sessions/{id}/dependencies/install, for a session of @language.
 */
int decode_install(const char *body, size_t len, const char *language,
                   struct session_request *ret_request, struct error *err) attr_must_check;

/* Body of POST /sessions/{id}/execute. */
struct decoded_run {
	struct decoded_exec exec; /* its language is NULL if none is given */
	bool wait;
	bool needs_language; /* set before decode_run: the body must have one */
};

void decoded_run_done(struct decoded_run *d);
#define cleanup_decoded_run attr_cleanup(decoded_run_done)
int decode_run(const char *body, size_t len, const struct decode_limits *limits,
               struct decoded_run *ret_run, struct error *err) attr_must_check;

/* Body of POST /executions/{id}/stdin. */
struct decoded_input {
	char *data; /* owned; NULL: none */
	size_t len;
	bool end;
};

void decoded_input_done(struct decoded_input *d);
#define cleanup_decoded_input attr_cleanup(decoded_input_done)
int decode_input(const char *body, size_t len, struct decoded_input *ret_input,
                 struct error *err) attr_must_check;
/** decode_nothing - a body without fields: "" or "{}". */
int decode_nothing(const char *body, size_t len, struct error *err) attr_must_check;
