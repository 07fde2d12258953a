/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: request bodies to structs of core, by field tables (fields.h). Only the form is checked:
 * core decides what is allowed. Pure.
 */

#include "api/json/fields.h"
#include "base/attr.h"
#include "base/error.h"
#include "core/run/run.h"
#include "core/secret/secret.h"
#include "core/session/session.h"
#include "core/template/template.h"
#include "core/tenant/tenant.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* decode_run.c */

struct decoded_run {
	struct run_request request;
	bool stream;
	json_t *event;       /* owned; NULL: the code has no handler */
	json_t *context;     /* owned; NULL: not given */
	bool wait;           /* in a session: answer after the end */
	bool needs_language; /* in a session: set before decode_run */
	/* Owned; NULL: not given. For op_language_choose. */
	char *file_name, *default_language;
};

struct decode_limits {
	size_t max_code_bytes;
	json_t *warnings; /* for fields_decode_open; borrowed; NULL: refuse unknown fields */
};

void decoded_run_done(struct decoded_run *d);
#define cleanup_decoded_run attr_cleanup(decoded_run_done)

extern const struct fields decode_exec_fields;
/** decode_exec - the caller releases @ret_exec in any case. */
int decode_exec(const char *body, size_t len, const struct decode_limits *limits,
                struct decoded_run *ret_exec, struct error *err) attr_must_check;
int decode_exec_object(const json_t *object, const struct decode_limits *limits,
                       struct decoded_run *ret_exec, struct error *err) attr_must_check;

/* POST /sessions/{id}/execute. */
extern const struct fields decode_run_fields, decode_input_fields, decode_resize_fields;
int decode_run(const char *body, size_t len, const struct decode_limits *limits,
               struct decoded_run *ret_run, struct error *err) attr_must_check;

/** decode_offer_event - after decode_run: code that defines a handler is called with an empty
 * event, if the request has none. For a language with handlers. */
void decode_offer_event(struct decoded_run *d);
/** decode_name_program - argv and tracebacks have the name of its file, if it has one. For a
 * language whose runner can. */
void decode_name_program(struct decoded_run *d);

/* POST /executions/{id}/stdin. */
struct decoded_input {
	char *data; /* owned; NULL: none */
	size_t len;
	bool end;
};

void decoded_input_done(struct decoded_input *d);
#define cleanup_decoded_input attr_cleanup(decoded_input_done)
int decode_input(const char *body, size_t len, struct decoded_input *ret_input,
                 struct error *err) attr_must_check;

/* decode_session.c */

/* POST /executions/{id}/resize. */
struct decoded_resize {
	uint64_t rows, cols;
};
int decode_resize(const char *body, size_t len, struct decoded_resize *ret_size,
                  struct error *err) attr_must_check;
int decode_resize_object(const json_t *object, struct decoded_resize *ret_size,
                         struct error *err) attr_must_check;

/* Seconds. */
#define DECODE_RUN_MAX     3600
#define DECODE_TTY_MAX     1000 /* rows, columns */
#define DECODE_SESSION_MAX (7 * 24 * 3600)

extern const struct fields decode_session_fields, decode_install_fields;

/** decode_session - the caller releases *ret_request in any case. @warnings: of
 * fields_decode_open. */
int decode_session(const char *body, size_t len, json_t *warnings,
                   struct session_request *ret_request, struct error *err) attr_must_check;
int decode_session_object(const json_t *object, json_t *warnings,
                          struct session_request *ret_request, struct error *err) attr_must_check;
#define cleanup_session_request attr_cleanup(session_request_done)

int decode_install(const char *body, size_t len, const char *language, json_t *warnings,
                   struct session_request *ret_request, struct error *err) attr_must_check;

/** decode_nothing - a body without fields: "" or "{}". */
int decode_nothing(const char *body, size_t len, json_t *warnings,
                   struct error *err) attr_must_check;

/* decode_template.c: created or changed. */

extern const struct fields decode_template_fields, decode_template_change_fields;

/** decode_template - @partial: nothing is required. */
int decode_template(const char *body, size_t len, bool partial, json_t *warnings,
                    struct template_spec *ret_spec, struct error *err) attr_must_check;

static inline void template_spec_donep(struct template_spec *spec)
{
	template_spec_done(spec);
}
#define cleanup_template_spec attr_cleanup(template_spec_donep)

/* decode_identity.c */

extern const struct fields decode_key_fields, decode_tenant_fields, decode_tenant_change_fields;

/* POST /keys. */
struct decoded_key {
	char *tenant, *name; /* owned; NULL: not given */
	uint32_t scopes;     /* 0: not given */
	uint64_t expires_us; /* from now; 0: never */
};

void decoded_key_done(struct decoded_key *d);
#define cleanup_decoded_key attr_cleanup(decoded_key_done)
int decode_key(const char *body, size_t len, struct decoded_key *ret_key,
               struct error *err) attr_must_check;

/* decode_secret.c */

extern const struct fields decode_secret_fields;

/* PUT /secrets/{id}. Owned; NULL: not given. */
struct decoded_secret {
	char *value; /* wiped */
	size_t value_len;
	char **hosts;
	bool mode_given;
	enum secret_mode mode;
	char *header, *format, *env;
};

void decoded_secret_done(struct decoded_secret *d);
#define cleanup_decoded_secret attr_cleanup(decoded_secret_done)
int decode_secret(const char *body, size_t len, struct decoded_secret *ret_secret,
                  struct error *err) attr_must_check;

/* POST /tenants, PATCH /tenants/{id}. */
struct decoded_tenant {
	char *name, *policy; /* owned; NULL: not given */
	uint64_t quotas[QUOTA_COUNT];
	bool has_quota[QUOTA_COUNT];
};

void decoded_tenant_done(struct decoded_tenant *d);
#define cleanup_decoded_tenant attr_cleanup(decoded_tenant_done)
/** decode_tenant - @is_new: the name is required, else refused. */
int decode_tenant(const char *body, size_t len, bool is_new, struct decoded_tenant *ret_tenant,
                  struct error *err) attr_must_check;
