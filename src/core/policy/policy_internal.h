/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by policy.c (order of checks; code, files), policy_limits.c (numbers) and
 * policy_allow.c (yes or no: language, variables, isolation, sessions), policy_network.c (the
 * network and its rules), policy_mcp.c (tools of MCP servers), policy_engine.c (who makes the box).
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
	const struct driver *driver;           /* that makes the box */
	struct policy_decision d;
	struct policy_rule refused;
	struct error *err;
};

/* In the order in which they are tried. */
struct policy_engines {
	size_t count;
	const struct driver *list[DRIVERS_MAX];
};

/** policy_find_engines - those that may make the box. One at least, or -1. */
int policy_find_engines(struct policy_deciding *in, struct policy_engines *ret) attr_must_check;
/** policy_allow_engine - the box is decided: whether .driver can make it. */
int policy_allow_engine(struct policy_deciding *in) attr_must_check;
/** policy_refuse - "policy NAME: PATH: @fmt" for @field. Return: -1. */
int policy_refuse(struct policy_deciding *in, enum error_code code, const char *field,
                  const struct policy_rule *rule, const char *fmt, ...) attr_printf(5, 6);
/** policy_quote - printable and short, for messages. */
const char *policy_quote(const char *text, char ret_quoted[POLICY_QUOTE_LEN]);
/** policy_matches - a pattern of the list; NULL: none. */
bool policy_matches(char *const *patterns, const char *name);
struct policy_rule policy_rule_of(const struct policy_source *by, const char *path);

int policy_decide_limits(struct policy_deciding *in) attr_must_check;
/** policy_decide_compile_limits - after policy_decide_limits. */
void policy_decide_compile_limits(struct policy_deciding *in);
/** policy_note_cuts - which values of the caller, not of its template, were reduced. */
void policy_note_cuts(struct policy_deciding *in);
int policy_allow_language(struct policy_deciding *in) attr_must_check;
int policy_allow_template(struct policy_deciding *in, const char *template) attr_must_check;
int policy_allow_network(struct policy_deciding *in) attr_must_check;
/** policy_keep_network - whether a box may keep it; .d gets its ranges. */
int policy_keep_network(struct policy_deciding *in, enum box_network network) attr_must_check;
/** policy_keep_host - refuse network host if a policy requires the layer 'net'. */
int policy_keep_host(struct policy_deciding *in) attr_must_check;
/** policy_keep_secrets - let @to use those of @names that exist and that all policies allow. */
void policy_keep_secrets(const struct policy_rules *rules, const struct policy *const *policies,
                         size_t count, const char *tenant, char *const *names,
                         struct box_rules *to);
/** policy_allow_secrets - after policy_allow_network. */
int policy_allow_secrets(struct policy_deciding *in) attr_must_check;
int policy_allow_mcp(struct policy_deciding *in) attr_must_check;
int policy_allow_extras(struct policy_deciding *in) attr_must_check;
int policy_allow_env(struct policy_deciding *in) attr_must_check;
int policy_allow_isolation(struct policy_deciding *in) attr_must_check;
int policy_allow_session(struct policy_deciding *in) attr_must_check;
int policy_allow_manager(struct policy_deciding *in, const char *field,
                         const char *manager) attr_must_check;
/** policy_allow_layer - manager and size of the packages that the template has. */
int policy_allow_layer(struct policy_deciding *in) attr_must_check;
