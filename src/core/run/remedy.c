/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/remedy.h"

#include <arpa/inet.h>
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "base/size.h"
#include "base/str.h"
#include "core/policy/policies.h"
#include "egress/address.h"
#include "egress/order.h"
#include "egress/rules.h"
#include "json/json_dump.h"

#define TEXT_LEN  400
#define VALUE_LEN 32
#define NAMES_LEN 140
/* An amount that did not suffice is doubled: how much would is not known. */
#define FACTOR     2
#define PAGE_BYTES 4096

static char *finish(json_t *j)
{
	char *text = json_dump_text(j, JSON_COMPACT);

	assert(text); /* all texts are ASCII */
	json_decref(j);
	return text;
}

/* No change allows it. */
static char *only_text(const char *text)
{
	return finish(json_pack("{s:s}", "text", text));
}

static json_t *wrap(const char *key, json_t *value)
{
	json_t *j = json_object();

	(void)json_object_set_new(j, key, value);
	return j;
}

/* "a.b.c" and a value: {"a": {"b": {"c": value}}}. Takes @value. */
static json_t *nest(const char *path, json_t *value)
{
	cleanup_free char *left = xstrdup(path);
	char *dot;

	while ((dot = strrchr(left, '.'))) {
		value = wrap(dot + 1, value);
		*dot = '\0';
	}
	return wrap(left, value);
}

static void set(json_t *j, const char *key, json_t *value)
{
	(void)json_object_set_new(j, key, value);
}

/* The policies that must all agree, and their names for a sentence. */
static json_t *policy_names(const struct policy_stack *stack, char ret_text[NAMES_LEN])
{
	const struct policy *const both[] = {stack->own, stack->chosen};
	json_t *list = json_array();

	(void)snprintf(ret_text, NAMES_LEN, "the policy");
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		if (both[i])
			(void)json_array_append_new(list, json_string(both[i]->name));
	if (stack->own && stack->chosen)
		(void)snprintf(ret_text, NAMES_LEN, "both policies %s and %s", stack->own->name,
		               stack->chosen->name);
	else if (stack->own || stack->chosen)
		(void)snprintf(ret_text, NAMES_LEN, "policy %s",
		               stack->own ? stack->own->name : stack->chosen->name);
	return list;
}

/* Calls that programs make for a purpose that a box serves in another way. */
static const struct {
	const char *prefix;
	const char *text;
} hints[] = {
	{"inotify", "No policy allows watching files. Poll instead: most tools can."},
	{"fanotify", "No policy allows watching files. Poll instead: most tools can."},
	{"ptrace", "No policy allows tracing. Use the debugger of the language, in the process."},
	{"socket", "Boxes have TCP, UDP and Unix sockets; no policy allows other kinds."},
	{"io_uring", "No policy allows io_uring. Use ordinary input and output."},
	{"bpf", "No policy allows programs in the kernel."},
	{"mount", "No policy allows mounting. Write below /workspace or /tmp."},
	{"unshare", "No policy allows namespaces in a box. Containers cannot run in a box."},
	{"clone", "No policy allows namespaces in a box. Containers cannot run in a box."},
	{"setns", "No policy allows namespaces in a box. Containers cannot run in a box."},
};

static char *for_syscall(const char *name)
{
	char text[TEXT_LEN];

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (str_has_prefix(name, hints[i].prefix))
			return only_text(hints[i].text);
	(void)snprintf(text, sizeof(text),
	               "No policy allows %.32s: the filter is the same for every box.", name);
	return only_text(text);
}

/* One limit that was hit. */
struct hit {
	enum policy_limit_id id;
	uint64_t applied;
	uint64_t wanted;
	bool of_box; /* in a session: decided when that was made */
};

static struct hit find_hit(enum outcome_limit limit, const struct outcome *o,
                           const struct remedy_scope *scope)
{
	const struct box_limits *l = &scope->spec->limits;
	const struct policy_decision *d = scope->decision;
	uint64_t written = o->stdout_bytes > o->stderr_bytes ? o->stdout_bytes : o->stderr_bytes;
	/* The workspace is in memory, and at most half of it. */
	bool is_half = l->workspace_bytes * 2 + 2 * PAGE_BYTES > l->memory_bytes;
	/* A program that was ended would have written more. */
	bool is_known = !d->kill_on_overflow && written > d->output_bytes;
	bool is_background = d->grants[POLICY_BACKGROUND].rule.by != POLICY_BY_NOBODY;
	const struct hit time = {.id = is_background ? POLICY_BACKGROUND : POLICY_TIMEOUT,
	                         .applied = d->timeout_us};
	const struct hit memory = {.id = POLICY_MEMORY, .applied = l->memory_bytes, .of_box = true};
	const struct hit disk = {.id = POLICY_DISK, .applied = l->workspace_bytes, .of_box = true};
	const struct hit hits[OUTCOME_LIMIT_COUNT] = {
		[OUTCOME_LIMIT_TIME] = time,
		[OUTCOME_LIMIT_CPU] = time,
		[OUTCOME_LIMIT_MEMORY] = memory,
		[OUTCOME_LIMIT_PROCESSES] = {.id = POLICY_PROCESSES,
	                                     .applied = l->pids,
	                                     .of_box = true},
		[OUTCOME_LIMIT_DISK] = is_half ? memory : disk,
		[OUTCOME_LIMIT_OUTPUT] = {.id = POLICY_OUTPUT,
	                                  .applied = d->output_bytes,
	                                  .wanted = is_known ? (written + KIB - 1) / KIB * KIB : 0},
	};
	struct hit h = hits[limit];

	if (h.wanted == 0)
		h.wanted = h.applied * FACTOR;
	return h;
}

static json_t *amount(enum policy_limit_id id, uint64_t value)
{
	char text[VALUE_LEN];

	if (id == POLICY_PROCESSES)
		return json_integer((json_int_t)value);
	if (id == POLICY_TIMEOUT || id == POLICY_BACKGROUND)
		return value % 1000000 ? json_real((double)value / 1e6)
		                       : json_integer((json_int_t)(value / 1000000));
	policy_limit_print(id, value, text, sizeof(text));
	return json_string(text);
}

/* A request cannot get more: whose maximum must rise first. Return: whether it can. */
static bool raise_most(const struct policy_rule *rule, const struct hit *h, json_t *j)
{
	if (rule->by == POLICY_BY_POLICY) {
		set(j, "policy", nest(rule->path, amount(h->id, h->wanted)));
		set(j, "policies", json_pack("[s]", rule->policy));
	} else if (rule->by == POLICY_BY_SETTING) {
		set(j, "settings", wrap(rule->path, amount(h->id, h->wanted)));
	}
	return rule->by == POLICY_BY_POLICY || rule->by == POLICY_BY_SETTING;
}

/* It did not reach its own limit. */
static bool is_crowded(const struct outcome *o, const struct policy_decision *d)
{
	return d->grants[POLICY_BACKGROUND].rule.by != POLICY_BY_NOBODY &&
	       o->stdout_bytes <= d->output_bytes && o->stderr_bytes <= d->output_bytes;
}

static char *for_limit(enum outcome_limit limit, const struct outcome *o,
                       const struct remedy_scope *scope)
{
	const struct policy_grant *g;
	const char *target, *field;
	char applied[VALUE_LEN], wanted[VALUE_LEN], most[VALUE_LEN], text[TEXT_LEN];
	json_t *j = json_object();
	struct hit h = find_hit(limit, o, scope);

	if (limit == OUTCOME_LIMIT_OUTPUT && is_crowded(o, scope->decision)) {
		json_decref(j);
		return only_text("The tenant's background runs together keep no more output: end "
		                 "some, or write to a file.");
	}
	if (h.applied == 0) {
		json_decref(j);
		return only_text("The host ran short of memory, not the box. Try again later, or "
		                 "ask for less memory.");
	}
	g = &scope->decision->grants[h.id];
	target = scope->in_session && h.of_box ? "session" : "request";
	field = policy_limit_field(h.id);
	policy_limit_print(h.id, h.applied, applied, sizeof(applied));
	policy_limit_print(h.id, g->most, most, sizeof(most));
	if (h.applied < g->most && h.wanted > g->most && limit != OUTCOME_LIMIT_OUTPUT)
		h.wanted = g->most;
	policy_limit_print(h.id, h.wanted, wanted, sizeof(wanted));
	if (h.wanted <= g->most) {
		(void)snprintf(text, sizeof(text), "Set %s of the %s to %s. It was %s; at most %s.",
		               field, target, wanted, applied, most);
	} else if (raise_most(&g->most_rule, &h, j)) {
		(void)snprintf(text, sizeof(text),
		               "Raise %s of %s%s to %s, then set %s of the %s. It was %s.",
		               g->most_rule.path,
		               g->most_rule.by == POLICY_BY_POLICY ? "policy " : "the settings",
		               g->most_rule.by == POLICY_BY_POLICY ? g->most_rule.policy : "",
		               wanted, field, target, applied);
	} else {
		json_decref(j);
		return only_text(
			h.id == POLICY_BACKGROUND
				? "The session ends then: create it with a longer lifetime."
				: "The host has no more.");
	}
	set(j, target, nest(field, amount(h.id, h.wanted)));
	set(j, "text", json_string(text));
	return finish(j);
}

char *remedy_for(const struct denial *denial, const struct outcome *outcome,
                 const struct remedy_scope *scope)
{
	if (str_equal(denial->kind, DENIAL_KIND_SYSCALL))
		return for_syscall(denial->what);
	if (str_equal(denial->kind, DENIAL_KIND_LIMIT))
		return for_limit(outcome_limit_named(denial->what), outcome, scope);
	return NULL;
}

static bool is_address(const char *host, bool *ret_v6)
{
	struct in6_addr a;

	*ret_v6 = inet_pton(AF_INET6, host, &a) == 1;
	return *ret_v6 || inet_pton(AF_INET, host, &a) == 1;
}

/* Return: whether a policy could have this rule. */
static bool is_rule(const char *rule)
{
	struct error err = {0};
	struct rules *rules = rules_parse(&rule, 1, &err);

	rules_free(rules);
	return rules != NULL;
}

/* "HOST:PORT" with what a rule has before and after; an address as a range of one. */
static void print_rule(const char *before, const char *host, unsigned port, const char *after,
                       char ret_rule[REMEDY_RULE_LEN])
{
	bool v6, literal = is_address(host, &v6);

	(void)snprintf(ret_rule, REMEDY_RULE_LEN, "%s%s%s%s:%u%s", literal ? "" : before,
	               v6 ? "[" : "", host, v6 ? "]" : "", port, literal ? "" : after);
}

/* Return: whether some rule would allow it. */
static bool find_rule(const struct box_denial *d, char ret_rule[REMEDY_RULE_LEN])
{
	char method[BOX_DETAIL_LEN + 1], address[BOX_DETAIL_LEN], path[BOX_DETAIL_LEN];
	size_t len = strcspn(d->request, " ");
	const char *from = d->request + len + (d->request[len] == ' ');

	(void)snprintf(method, sizeof(method), "%.*s ", (int)len, d->request);
	/* The query is not part of a rule. */
	(void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(from, "?"), from);
	switch (d->reason) {
	case EGRESS_NO_HOST:
	case EGRESS_PORT:
	case EGRESS_TUNNEL:
		print_rule("", d->host, d->port, "", ret_rule);
		break;
	case EGRESS_METHOD:
	case EGRESS_PATH:
		/* A path that was cut off would allow another one. */
		if (strlen(d->request) >= BOX_DETAIL_LEN - 2)
			return false;
		print_rule(method, d->host, d->port, path, ret_rule);
		break;
	case EGRESS_ADDRESS: /* "ADDRESS: its kind" */
		(void)snprintf(address, sizeof(address), "%s", d->detail);
		if (strstr(address, ": "))
			*strstr(address, ": ") = '\0';
		print_rule("", address, d->port, "", ret_rule);
		break;
	case EGRESS_NO_TLS:
	case EGRESS_NO_SNI:
	case EGRESS_OTHER_SNI:
	case EGRESS_ECH:
		print_rule("TCP ", d->host, d->port, "", ret_rule);
		break;
	default:
		return false;
	}
	return is_rule(ret_rule);
}

bool remedy_address_rule(const struct box_denial *denial, char ret_rule[REMEDY_RULE_LEN])
{
	return denial->by == BOX_REFUSED_BY_PROXY && denial->reason == EGRESS_ADDRESS &&
	       find_rule(denial, ret_rule);
}

static const char *const refusals[EGRESS_REASON_COUNT] = {
	[EGRESS_BAD_REQUEST] = "Send an HTTP proxy request or SOCKS5; see docs/network.md.",
	[EGRESS_BAD_NAME] = "Use the plain name of a host.",
	[EGRESS_SECRET_GONE] = "The secret for this host was removed: set it again.",
	[EGRESS_ADDRESS] = "No rule opens this address.",
	[EGRESS_METHOD] = "No rule can name this request.",
	[EGRESS_PATH] = "No rule can name this path: servers may read it in several ways.",
};

static const char *const advice[EGRESS_REASON_COUNT] = {
	[EGRESS_NO_TLS] = "Use TLS. ",
	[EGRESS_NO_SNI] = "Send the host as TLS server name. ",
	[EGRESS_OTHER_SNI] = "Send the host as TLS server name. ",
	[EGRESS_ECH] = "Turn encrypted server names off. ",
};

static char *for_bytes(const struct box_rules *rules)
{
	uint64_t bytes = rules && rules->limits.bytes ? rules->limits.bytes * FACTOR : 0;
	char value[VALUE_LEN], text[TEXT_LEN];

	if (bytes == 0)
		return only_text("Send and receive less.");
	format_size(bytes, value, sizeof(value));
	(void)snprintf(text, sizeof(text),
	               "Send and receive less, or raise egress.max_bytes of the settings to %s.",
	               value);
	return finish(
		json_pack("{s:s, s:{s:s}}", "text", text, "settings", "egress.max_bytes", value));
}

char *remedy_for_network(const struct box_denial *denial, const struct remedy_scope *scope)
{
	const char *hint = denial->reason < EGRESS_REASON_COUNT ? advice[denial->reason] : NULL;
	const char *none = denial->reason < EGRESS_REASON_COUNT ? refusals[denial->reason] : NULL;
	char rule[REMEDY_RULE_LEN], names[NAMES_LEN], text[TEXT_LEN + REMEDY_RULE_LEN];
	json_t *policies;

	if (denial->reason == EGRESS_BYTES)
		return for_bytes(scope->spec->rules);
	if (!find_rule(denial, rule))
		return only_text(none ? none : "No rule can name this host.");
	policies = policy_names(&scope->decision->stack, names);
	(void)snprintf(text, sizeof(text), "%sAdd \"%s\" to network.allow of %s.", hint ? hint : "",
	               rule, names);
	return finish(json_pack("{s:s, s:{s:{s:[s]}}, s:o}", "text", text, "policy", "network",
	                        "allow", rule, "policies", policies));
}

/* Of the policy, as every policy must grant it. */
static char *tool_of_policy(const char *key, const char *what, const struct remedy_scope *scope)
{
	char names[NAMES_LEN], text[TEXT_LEN];
	json_t *policies = policy_names(&scope->decision->stack, names);

	(void)snprintf(text, sizeof(text), "Add \"%s\" to mcp.%s of %s.", what, key, names);
	return finish(json_pack("{s:s, s:{s:{s:[s]}}, s:o}", "text", text, "policy", "mcp", key,
	                        what, "policies", policies));
}

char *remedy_for_tool(const struct box_tool_denial *denial, const struct remedy_scope *scope)
{
	const char *of = scope->in_session ? "session" : "request";
	char what[2 * BOX_TOOL_LEN], text[TEXT_LEN];

	if (!denial->server[0])
		return only_text(
			"Name the server in mcp of the request; mcp.servers of the policy "
			"must allow it. GET /api/v1/mcp/servers lists those that it allows.");
	(void)snprintf(what, sizeof(what), "%s/%s", denial->server, denial->tool);
	if (str_equal(denial->rule, DENIAL_RULE_SERVERS))
		return tool_of_policy("servers", denial->server, scope);
	if (str_equal(denial->rule, DENIAL_RULE_TOOLS))
		return tool_of_policy("tools", what, scope);
	(void)snprintf(text, sizeof(text), "Add \"%.200s\" to mcp of the request%s.", what,
	               scope->in_session ? " that makes the session" : "");
	return finish(json_pack("{s:s, s:{s:[s]}}", "text", text, of, "mcp", what));
}

/* Network bridge. */

/* Return: the index in bridge.allow of the range that contains it, or -1. */
static int range_of(const struct in6_addr *a, char *const *ranges)
{
	for (int i = 0; ranges && ranges[i]; i++) {
		struct error err = {0};
		struct cidr c;

		if (cidr_parse(ranges[i], &c, &err) == 0 && cidr_contains(&c, a))
			return i;
	}
	return -1;
}

/* Whether bridge.allow can name it. */
static bool can_be_opened(const char *host, const struct in6_addr *a)
{
	struct error err = {0};
	struct cidr c;

	return address_refusal(a) && cidr_parse(host, &c, &err) == 0 && address_opened_by(a, &c);
}

const char *remedy_bridge_rule(const struct box_denial *denial, const struct remedy_scope *scope)
{
	struct in6_addr a;

	if (denial->by != BOX_REFUSED_ADDRESS ||
	    address_parse(denial->host, strlen(denial->host), &a) < 0)
		return DENIAL_RULE_ADDRESS;
	if (range_of(&a, scope->ranges) >= 0)
		return DENIAL_RULE_RANGES;
	return can_be_opened(denial->host, &a) ? DENIAL_RULE_BRIDGE : DENIAL_RULE_ADDRESS;
}

/* @range: for the policies that narrow and do not name it yet. Return: whether there are some. */
static bool add_range(const char *range, const struct remedy_scope *scope, json_t *j,
                      char ret_text[NAMES_LEN])
{
	const struct policy_stack *stack = &scope->decision->stack;
	struct policy_stack narrow = {0};

	if (stack->own && stack->own->network_ranges.items &&
	    !str_list_has(stack->own->network_ranges.items, range))
		narrow.own = stack->own;
	if (stack->chosen && stack->chosen->network_ranges.items &&
	    !str_list_has(stack->chosen->network_ranges.items, range))
		narrow.chosen = stack->chosen;
	if (!narrow.own && !narrow.chosen)
		return false;
	set(j, "policy", json_pack("{s:{s:[s]}}", "network", "ranges", range));
	set(j, "policies", policy_names(&narrow, ret_text));
	return true;
}

static char *for_range(const char *range, const struct remedy_scope *scope)
{
	char names[NAMES_LEN], text[TEXT_LEN];
	json_t *j = json_object();

	/* The policies were reloaded, and the session has not got it yet. */
	if (!add_range(range, scope, j, names)) {
		json_decref(j);
		return only_text("The policy allows it now: make a new session.");
	}
	(void)snprintf(text, sizeof(text), "Add \"%s\" to network.ranges of %s.", range, names);
	set(j, "text", json_string(text));
	return finish(j);
}

static char *for_private(const char *host, const struct remedy_scope *scope)
{
	char names[NAMES_LEN], text[TEXT_LEN];
	json_t *j = json_object();
	bool narrow;

	set(j, "settings", json_pack("{s:[s]}", DENIAL_RULE_BRIDGE, host));
	narrow = add_range(host, scope, j, names);
	(void)snprintf(text, sizeof(text), "Add \"%s\" to bridge.allow of the settings%s%s.", host,
	               narrow ? " and to network.ranges of " : "", narrow ? names : "");
	set(j, "text", json_string(text));
	return finish(j);
}

char *remedy_for_bridge(const struct box_denial *denial, const struct remedy_scope *scope)
{
	const char *rule = remedy_bridge_rule(denial, scope);
	struct in6_addr a;
	int index;

	if (denial->by == BOX_REFUSED_HOST)
		return only_text("Network bridge does not reach the host under any of its "
		                 "addresses. A rule of network mode allowlist can name one.");
	if (denial->by == BOX_REFUSED_BOX)
		return only_text("Boxes do not reach each other.");
	if (str_equal(rule, DENIAL_RULE_ADDRESS) ||
	    address_parse(denial->host, strlen(denial->host), &a) < 0)
		return only_text("No setting opens this address.");
	index = range_of(&a, scope->ranges);
	if (index < 0)
		return for_private(denial->host, scope);
	if (index >= BOX_RANGES_NAMED)
		return only_text("A policy can name the first 15 ranges of bridge.allow, and this "
		                 "is a later one. Policies without network.ranges reach it.");
	return for_range(scope->ranges[index], scope);
}
