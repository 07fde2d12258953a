/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: policies + settings + request + language + driver's guarantees -> everything about one
 * execution or session, or a refusal that names the rule. Pure. Nothing later checks limits, names
 * or variables of the request again.
 *
 * Every decided value remembers its rule: the request, a policy (name, key and line), a setting,
 * the driver, or the program.
 *
 * Up to two policies apply: the tenant's, and one that the request names. What either refuses is
 * refused, and the smaller maximum counts: naming a policy never widens what a caller gets.
 *
 * A limit too small to run anything is refused. 0 means "not requested"; only the decoder knows
 * whether a caller wrote 0.
 */

#include "base/error.h"
#include "core/config/limits.h"
#include "core/policy/policies.h"
#include "core/request/session_request.h"
#include "driver/box_spec.h"
#include "driver/driver.h"
#include <stddef.h>
#include <stdint.h>

struct config;
struct run_request;
struct runner;
struct runners;
struct secrets;
struct template;
struct toolchains;

#define POLICY_ARGS_MAX     256
#define POLICY_ARGS_BYTES   (32 * 1024)
#define POLICY_FILES_MAX    256
#define POLICY_NAME_BYTES   4096
#define POLICY_NAME_PART    255
#define POLICY_NAME_PARTS   32
#define POLICY_REPORT_BYTES (4 * 1024 * 1024)
#define POLICY_LANGUAGE     "python"               /* of sessions */
#define POLICY_NO_ENGINE    "there is no engine '" /* how that error begins */

/* Borrowed. */
struct policy_rules {
	const struct config *config;
	const struct runners *runners;
	const struct driver *driver; /* the default engine, with the others of the daemon */
	unsigned cores;
	const struct policies *policies;     /* NULL: only the settings decide */
	const struct secrets *secrets;       /* NULL: there are none */
	const struct toolchains *toolchains; /* NULL: the files of a root decide */
};

/* References if the owning struct says so, else borrowed. */
struct policy_stack {
	const struct policy *own;    /* the tenant's; NULL: only the settings decide */
	const struct policy *chosen; /* by the request; NULL: none */
};

void policy_stack_ref(const struct policy_stack *stack);
void policy_stack_unref(struct policy_stack *stack);
/**
 * policy_choose - for a tenant with policy @tenants (NULL or "": the default) and a request that
 * names @asked (NULL: none). ERR_DENIED if it may not be named, whether or not it exists.
 * @ret_stack is borrowed until the next reload.
 */
int policy_choose(const struct policies *all, const char *tenants, const char *asked,
                  struct policy_stack *ret_stack, struct error *err) attr_must_check;

enum policy_by {
	POLICY_BY_NOBODY,  /* not requested, not decided */
	POLICY_BY_REQUEST, /* as requested */
	POLICY_BY_POLICY,
	POLICY_BY_SETTING,
	POLICY_BY_DRIVER,
	POLICY_BY_PROGRAM, /* built-in */
	POLICY_BY_COUNT
};
const char *policy_by_name(enum policy_by by);

struct policy_rule {
	enum policy_by by;
	const char *policy; /* name */
	const char *path; /* "limits.memory.max": key of a policy or setting, or a word; literal */
	unsigned line;    /* 0: the default of an unset key */
};

struct policy_grant {
	uint64_t asked; /* 0: not requested */
	uint64_t granted;
	struct policy_rule rule;
	uint64_t most; /* that a request could get */
	struct policy_rule most_rule;
};

/* A limit that is smaller than the caller asked for. */
struct policy_cut {
	const char *name;  /* "disk"; literal */
	const char *field; /* of the request: "resources.disk"; literal */
	char asked[32], granted[32];
	char why[128];
};

struct policy_cuts {
	size_t count;
	struct policy_cut list[POLICY_LIMIT_COUNT];
};

/* Why a box reaches what it does; the rules are set for the network that it has. */
struct policy_reach {
	bool intercept;                                              /* allowlist */
	struct policy_rule allow_rule, secrets_rule, intercept_rule; /* allowlist */
	struct policy_rule ranges_rule;                              /* bridge */
};

struct policy_decision {
	struct box_spec spec;         /* the caller sets its id */
	const struct runner *runner;  /* borrowed */
	char *const *session_command; /* NULL: none, or the root lacks its programs */
	/* Owned, NULL-terminated; all NULL for a run in a session (run_request.in_session). */
	char **argv;
	char **env;
	char **prepare_argv; /* a process started ahead of the code; NULL: none */
	/* Of a compiled language, see core/run/build.h. */
	char **compile_argv, **compile_env;
	struct box_limits compile_limits;
	uint64_t compile_timeout_us;
	bool share_builds; /* with other tenants */
	bool resident;     /* that process is a session's runner */
	uint64_t timeout_us;
	uint64_t output_bytes; /* per stream */
	uint32_t report_bytes; /* 0: no report */
	bool own_env;          /* a tenant set values in @env */
	bool handler;          /* the runner must do more than run the code */
	bool kill_on_overflow;
	uint64_t idle_us, lifetime_us; /* sessions */
	enum session_mode mode;        /* of a session */
	struct policy_stack stack;     /* references */
	struct policy_grant grants[POLICY_LIMIT_COUNT];
	struct policy_cuts *cuts; /* owned; NULL: none */
	struct policy_rule language, network, isolation, overflow, engine;
	struct policy_reach reach;
};

/* What a box was created with. */
struct policy_box {
	const char *tenant;
	char *const *hosts;   /* network_allow of its request; NULL: the policies' */
	char *const *secrets; /* names; NULL: none */
};

struct policy_explanation {
	bool allowed;
	struct policy_decision decision; /* if allowed */
	struct policy_rule refused;      /* POLICY_BY_NOBODY: the request is invalid */
	struct policy_stack stack;       /* borrowed; may be empty */
	struct error err;
};

/** policy_decide - Return: 0; or -1 with the field in *err and @ret_decision empty. */
int policy_decide(const struct policy_rules *rules, const struct policy_stack *stack,
                  const struct run_request *request, struct policy_decision *ret_decision,
                  struct error *err) attr_must_check;
/**
 * policy_decide_session - like policy_decide for a box whose code comes later. argv stays NULL;
 * prepare_argv is a persistent session's runner.
 */
int policy_decide_session(const struct policy_rules *rules, const struct policy_stack *stack,
                          const struct session_request *request,
                          struct policy_decision *ret_decision, struct error *err) attr_must_check;
/**
 * policy_network_rules - what @stack lets a box with network allowlist reach now, and which of its
 * secrets it may use. A reference.
 */
struct box_rules *policy_network_rules(const struct policy_rules *rules,
                                       const struct policy_stack *stack,
                                       const struct policy_box *box);
/** policy_check_network - whether @stack lets a box keep the network that it has, and which ranges
 * (box_spec.ranges) it may reach with BOX_NETWORK_BRIDGE. */
int policy_check_network(const struct policy_rules *rules, const struct policy_stack *stack,
                         enum box_network network, uint16_t *ret_ranges,
                         struct error *err) attr_must_check;
/** policy_ranges - those of bridge.allow that @granted (box_spec.ranges) stands for. Return: owned;
 * the texts are borrowed. */
char **policy_ranges(const struct config *c, uint16_t granted) attr_owned(free);
/** policy_known_secrets - those of @names that exist. Return: owned; the names are borrowed. */
char **policy_known_secrets(const struct policy_rules *rules, const char *tenant,
                            char *const *names) attr_owned(free);
/** policy_limit_field - of a request: "resources.memory". */
const char *policy_limit_field(enum policy_limit_id id);
/** policy_limit_print - a value as requests and policies have it: "512Mi". */
void policy_limit_print(enum policy_limit_id id, uint64_t value, char *ret_text, size_t size);
/** policy_mcp_tools - what of @asked @stack lets a box call now. A reference. */
struct box_rules *policy_mcp_tools(const struct policy_rules *rules,
                                   const struct policy_stack *stack, char *const *asked);
/**
 * policy_registry_rules - @rule, and the hosts of @set (a word of network.allow) if the registry
 * @is_public or the operator has set them. A reference.
 */
struct box_rules *policy_registry_rules(const struct config *config, const char *set,
                                        const char *rule, bool is_public);

struct policy_packages {
	uint64_t timeout_us, max_bytes; /* of one installation */
};
/** policy_decide_packages - whether @stack allows packages of @manager, and within which limits. */
int policy_decide_packages(const struct policy_rules *rules, const struct policy_stack *stack,
                           const char *manager, struct policy_packages *ret_limits,
                           struct error *err) attr_must_check;
/** policy_check_env - whether @stack allows these variables. */
int policy_check_env(const struct policy_rules *rules, const struct policy_stack *stack,
                     char *const *env, struct error *err) attr_must_check;

/** policy_explain - the result of policy_decide, and why. */
void policy_explain(const struct policy_rules *rules, const struct policy_stack *stack,
                    const struct run_request *request, struct policy_explanation *ret_explanation);
void policy_explain_session(const struct policy_rules *rules, const struct policy_stack *stack,
                            const struct session_request *request,
                            struct policy_explanation *ret_explanation);
void policy_explanation_done(struct policy_explanation *e);
void policy_decision_done(struct policy_decision *d);

#define POLICY_WORKSPACE "/workspace"
/* In the workspace of a fresh box; hidden: not an artifact of the run. */
#define POLICY_ARTIFACT ".millibox/main"

enum policy_compile {
	POLICY_COMPILE_NOT,  /* the command runs the program */
	POLICY_COMPILE_SEND, /* it compiles, and writes the result to stdout */
	POLICY_COMPILE_KEEP, /* it compiles, and leaves the result in the box */
	POLICY_COMPILE_COUNT
};

/* Borrowed; @args and @template may be NULL. */
struct policy_command {
	const struct runner *runner;
	const struct template *template;
	char *const *command;
	const char *source; /* file name */
	char *const *args;
	char *const *options; /* NULL: none */
	/* Of a compiled language: its file in the workspace; for {sources}, the request. */
	const char *artifact;
	const struct run_request *request;
	enum policy_compile compile;
};
/** policy_argv - Return: owned. */
char **policy_argv(const struct policy_command *command) attr_must_check;
/** policy_check_name - check a request's file name (FA-4). Return: 0 or -EINVAL. */
int policy_check_name(const char *name) attr_must_check;
