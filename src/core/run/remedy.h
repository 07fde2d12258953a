/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the smallest change that would allow what was denied, as compact JSON:
 *
 *   text      a sentence for people; always
 *   request   members of the request that would suffice
 *   session   members of the request that makes the session
 *   policy    keys to add to a policy file, and policies: the names of the policies that need them
 *   settings  keys of the daemon's settings
 *
 * Without a machine form nothing that Millibox offers allows it. docs/denials.md. Pure.
 */

#include "base/attr.h"
#include "core/policy/policy.h"
#include "core/run/outcome.h"

struct remedy_scope {
	const struct policy_decision *decision;
	const struct box_spec *spec; /* applied */
	bool in_session;
	char *const *ranges; /* bridge.allow; NULL: none */
};

/** remedy_for - a system call or a limit of @outcome. Return: owned. */
char *remedy_for(const struct denial *denial, const struct outcome *outcome,
                 const struct remedy_scope *scope) attr_must_check;
/** remedy_for_tool - a tool of an MCP server. Return: owned. */
char *remedy_for_tool(const struct box_tool_denial *denial,
                      const struct remedy_scope *scope) attr_must_check;
#define REMEDY_RULE_LEN 600

/** remedy_address_rule - of a host whose address is not public: the rule that opens the address.
 * Return: false: it was refused for another reason, or no rule does. */
bool remedy_address_rule(const struct box_denial *denial, char ret_rule[REMEDY_RULE_LEN]);
/** remedy_for_network - Return: owned. */
char *remedy_for_network(const struct box_denial *denial,
                         const struct remedy_scope *scope) attr_must_check;
/** remedy_bridge_rule - which rule of network bridge refused it. Return: a literal. */
const char *remedy_bridge_rule(const struct box_denial *denial, const struct remedy_scope *scope);
/** remedy_for_bridge - Return: owned. */
char *remedy_for_bridge(const struct box_denial *denial,
                        const struct remedy_scope *scope) attr_must_check;
