/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: objects of core as JSON, each with the fields of both forms that clients of the control
 * plane know (id and session_id, resources and resource_limit ...). Returned objects are owned.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "core/identity/identity.h"
#include "core/run/run_record.h"
#include "core/session/session.h"
#include <jansson.h>
#include <stdbool.h>

struct policy;
struct policy_cuts;
struct principal;
struct report;
struct run_service;
struct runners;
struct secret;
struct template;
struct templates;

/** encode_text - NULL is null. */
json_t *encode_text(const char *s) attr_must_check;
/** encode_moment - RFC 3339 in UTC; 0 is null. */
json_t *encode_moment(uint64_t real_ms) attr_must_check;
json_t *encode_seconds(uint64_t us) attr_must_check;
json_t *encode_resources(const struct box_limits *limits) attr_must_check;
/** encode_texts - a list of strings; NULL is an empty one. */
json_t *encode_texts(char *const *items) attr_must_check;
/** encode_layers - names of the isolation layers in @mask. */
json_t *encode_layers(uint32_t mask) attr_must_check;
/** encode_variables - "NAME=value" as members. */
json_t *encode_variables(char *const *env) attr_must_check;
json_t *encode_template(const struct templates *all, const struct template *t,
                        const struct runners *runners) attr_must_check;
json_t *encode_session(const struct session *session) attr_must_check;
/** encode_session_status - the control plane's word: a started session is "running". */
const char *encode_session_status(const struct session_info *info);
/** encode_session_container - a box, or for an ephemeral session, whose boxes live shortly, its own
 * id; NULL: none. */
const char *encode_session_container(const struct session_info *info);
json_t *encode_session_stats(struct session *session) attr_must_check;

/* encode_run.c. Values that the host does not measure are null in results of sessions; in others
 * they are left out, like counts of 0. */

/** encode_artifacts - @session_id NULL: they are gone with their box. */
json_t *encode_artifacts(const struct artifacts *artifacts, const char *session_id) attr_must_check;
/** encode_result_report - of the runner; empty if malformed. */
void encode_result_report(const struct outcome *outcome, struct report *ret_report);
/**
 * encode_result_add - a result. @run: a session's, with the members of its record and both forms of
 * names; NULL: without a session, in the short form of Millibox's own paths.
 * Return: 0 or -1: no room; @b then holds a part.
 */
int encode_result_add(struct buf *b, const struct outcome *outcome, const struct report *report,
                      const struct run_record_info *run) attr_must_check;
/** encode_result_brief - without output and code. */
json_t *encode_result_brief(const struct outcome *outcome, const struct report *report,
                            const struct run_record_info *run) attr_must_check;
const char *encode_run_status_name(const struct run_record_info *info);
/** encode_run_ticket - for a request that does not wait. */
json_t *encode_run_ticket(const struct run_record *e) attr_must_check;
json_t *encode_run_status(const struct run_record *e) attr_must_check;
/**
 * encode_run_add - the whole run: result (empty while it runs) and request. Return: 0 or -1: no
 * room.
 */
int encode_run_add(struct buf *b, const struct run_record_info *run) attr_must_check;
/** encode_run_brief - for lists: without output, code and report. */
json_t *encode_run_brief(const struct run_record *e) attr_must_check;

/** encode_secret - without its value. @status: a word. */
json_t *encode_secret(const struct secret *secret, const char *status) attr_must_check;
/* encode_why.c: three lines: what ended it, which rule, what to change. */

/** encode_why - @error: of the runner's report; may be null. */
json_t *encode_why(const struct outcome *outcome, const json_t *error) attr_must_check;
/**
 * encode_hint - where nothing was refused: the rule that the error output of a failed program hints
 * at, and what to change. @error: as above. Return: NULL: it hints at none.
 */
const char *encode_hint(const struct outcome *outcome, const json_t *error,
                        const char **ret_change) attr_must_check;
/** encode_run_why - with the id and the status of a record. */
json_t *encode_run_why(const struct run_record *e) attr_must_check;

/* encode_identity.c: never contains secrets. */

json_t *encode_key(const struct identity_key_info *info) attr_must_check;
const char *encode_key_status(const struct identity_key_info *info);
json_t *encode_tenant(const struct tenant *tenant) attr_must_check;
/** encode_principal - the caller; @tenant NULL: tenants are off. */
json_t *encode_principal(const struct principal *p, const struct tenant *tenant) attr_must_check;

/* encode_policy.c */

/** encode_cuts - `limits`: what was requested, granted and why. @cuts NULL: NULL. */
json_t *encode_cuts(const struct policy_cuts *cuts) attr_must_check;
/** encode_cuts_warn - the same as sentences, added to @warnings; @only: this limit, NULL: all. */
void encode_cuts_warn(const struct policy_cuts *cuts, const char *only, json_t *warnings);
/** encode_cuts_tell - both: `limits` of @view, and sentences. */
void encode_cuts_tell(const struct policy_cuts *cuts, json_t *view, json_t *warnings);

/**
 * encode_policy_is_seen - callers without a key and administrators see all policies; others those
 * that apply to them or that they may select.
 */
bool encode_policy_is_seen(const struct run_service *runs, const struct principal *p,
                           const struct policy *policy);
/** encode_policy_head - without rules. */
json_t *encode_policy_head(const struct run_service *runs, const struct principal *p,
                           const struct policy *policy) attr_must_check;
json_t *encode_policy(const struct run_service *runs, const struct principal *p,
                      const struct policy *policy) attr_must_check;
