/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by policy.c (order of checks; code, files), policy_limits.c (numbers) and
 * policy_allow.c (yes or no: language, variables, isolation, sessions), policy_network.c (the
 * network and its rules).
 */

#include "core/policy/policy.h"
#include "core/request/run_request.h"
#include "core/request/session_request.h"

#define POLICY_STACK_MAX 2
#define POLICY_QUOTE_LEN 48

struct policy_deciding {
	const struct policy_rules *rules;
	const struct policy *policies[POLICY_STACK_MAX]; /* the chosen one first */
	size_t policies_count;
	const struct run_request *request;
	const struct session_request *session; /* NULL: an execution */
	struct policy_decision d;
	struct policy_rule refused;
	struct error *err;
};

/** policy_refuse - "policy NAME: PATH: @fmt" for @field. Return: -1. */
int policy_refuse(struct policy_deciding *in, enum error_code code, const char *field,
                  const struct policy_rule *rule, const char *fmt, ...) attr_printf(5, 6);
/** policy_quote - printable and short, for messages. */
const char *policy_quote(const char *text, char ret_quoted[POLICY_QUOTE_LEN]);
struct policy_rule policy_rule_of(const struct policy_source *by, const char *path);

int policy_decide_limits(struct policy_deciding *in) attr_must_check;
/** policy_note_cuts - which values of the caller, not of its template, were reduced. */
void policy_note_cuts(struct policy_deciding *in);
int policy_allow_language(struct policy_deciding *in) attr_must_check;
int policy_allow_template(struct policy_deciding *in, const char *template) attr_must_check;
int policy_allow_network(struct policy_deciding *in) attr_must_check;
int policy_allow_extras(struct policy_deciding *in) attr_must_check;
int policy_allow_env(struct policy_deciding *in) attr_must_check;
int policy_allow_isolation(struct policy_deciding *in) attr_must_check;
int policy_allow_session(struct policy_deciding *in) attr_must_check;
