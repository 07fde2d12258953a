/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: policies + settings + request + language + the driver's guarantees -> everything about one
 * execution or session, or a refusal that names the rule. A pure function: no clock, no file, no
 * state. Nothing later looks at limits, names or variables of the request again.
 *
 * Every decided value remembers which rule decided it: the request itself, a policy (name, key
 * and line), a setting, the driver, or the program.
 *
 * Up to two policies apply at once: the tenant's, and one that the request names. What either
 * refuses is refused, and the smaller of two maxima counts; so naming a policy can never widen
 * what a caller gets.
 *
 * A limit too small to run anything is refused. 0 means "not requested" in struct run_request;
 * only the decoder knows whether a caller wrote 0.
 */

#include "base/error.h"
#include "core/config/limits.h"
#include "core/policy/policies.h"
#include "driver/box_spec.h"
#include "driver/driver.h"
#include <stddef.h>
#include <stdint.h>

struct config;
struct run_request;
struct runner;
struct runners;
struct session_request;
struct template;

#define POLICY_ARGS_MAX     256
#define POLICY_ARGS_BYTES   (32 * 1024)
#define POLICY_FILES_MAX    256
#define POLICY_NAME_BYTES   4096
#define POLICY_NAME_PART    255
#define POLICY_NAME_PARTS   32
#define POLICY_REPORT_BYTES (4 * 1024 * 1024)
#define POLICY_LANGUAGE     "python" /* default of a session */

/* Inputs besides policies and request. All borrowed. */
struct policy_rules {
	const struct config *config;
	const struct runners *runners;
	const struct driver_caps *caps;
	unsigned cores;
	const struct policies *policies; /* NULL: only the settings decide */
};

/* The policies that apply. References if the owning struct says so, else borrowed. */
struct policy_stack {
	const struct policy *own;    /* the tenant's; NULL: only the settings decide */
	const struct policy *chosen; /* named by the request; NULL: none */
};

void policy_stack_ref(const struct policy_stack *stack);
void policy_stack_unref(struct policy_stack *stack);
/**
 * policy_choose - the policies for a tenant whose policy is @tenants (NULL or "": the default)
 * and a request that names @asked (NULL: none). ERR_DENIED if it may not be named, whether or not
 * it exists. @ret_stack is borrowed until the next reload.
 */
int policy_choose(const struct policies *all, const char *tenants, const char *asked,
                  struct policy_stack *ret_stack, struct error *err) attr_must_check;

enum policy_by {
	POLICY_BY_NOBODY,  /* not requested, not decided */
	POLICY_BY_REQUEST, /* granted as requested */
	POLICY_BY_POLICY,
	POLICY_BY_SETTING,
	POLICY_BY_DRIVER,
	POLICY_BY_PROGRAM, /* built-in rule */
	POLICY_BY_COUNT
};
const char *policy_by_name(enum policy_by by);

struct policy_rule {
	enum policy_by by;
	const char *policy; /* name of the policy */
	const char *path; /* "limits.memory.max": key of a policy or setting, or a word; literal */
	unsigned line;    /* in the policy's file; 0: the default of an unset key */
};

/* A decided number. */
struct policy_grant {
	uint64_t asked; /* 0: not requested */
	uint64_t granted;
	struct policy_rule rule;
};

struct policy_decision {
	struct box_spec spec;         /* the caller chooses its id */
	const struct runner *runner;  /* borrowed from the runners */
	char *const *session_command; /* the runner's, if the root has what it needs */
	char **argv;                  /* owned, NULL-terminated */
	char **env;                   /* owned, NULL-terminated */
	char **prepare_argv; /* owned; argv of a process started ahead of the code; NULL: none */
	bool resident;       /* that process is the resident runner of a session */
	uint64_t timeout_us;
	uint64_t output_bytes;         /* per stream */
	uint32_t report_bytes;         /* 0: the runner does not report */
	bool own_env;                  /* @env has values set by a tenant */
	bool handler;                  /* the runner must do more than run the code */
	bool kill_on_overflow;         /* on too much output */
	uint64_t idle_us, lifetime_us; /* of a session */
	struct policy_stack stack;     /* references */
	struct policy_grant grants[POLICY_LIMIT_COUNT];
	struct policy_rule language, network, isolation, overflow; /* who decided these */
};

/* The decision and its reasons. */
struct policy_explanation {
	bool allowed;
	struct policy_decision decision; /* if allowed */
	struct policy_rule refused;      /* else; POLICY_BY_NOBODY: the request itself is invalid */
	struct policy_stack stack;       /* borrowed; empty if none could be chosen */
	struct error err;
};

/** policy_decide - Return: 0; or -1 with the field in *err and @ret_decision empty. */
int policy_decide(const struct policy_rules *rules, const struct policy_stack *stack,
                  const struct run_request *request, struct policy_decision *ret_decision,
                  struct error *err) attr_must_check;
/**
 * policy_decide_session - like policy_decide for a session: limits, environment and layers of a
 * box whose code comes later. argv stays NULL; for a persistent session prepare_argv is its
 * runner.
 */
int policy_decide_session(const struct policy_rules *rules, const struct policy_stack *stack,
                          const struct session_request *request,
                          struct policy_decision *ret_decision, struct error *err) attr_must_check;
/** policy_check_env - whether a box under @stack may have these variables. */
int policy_check_env(const struct policy_rules *rules, const struct policy_stack *stack,
                     char *const *env, struct error *err) attr_must_check;

/** policy_explain - the result of policy_decide for @request, and why. */
void policy_explain(const struct policy_rules *rules, const struct policy_stack *stack,
                    const struct run_request *request, struct policy_explanation *ret_explanation);
/** policy_explain_session - the same for policy_decide_session. */
void policy_explain_session(const struct policy_rules *rules, const struct policy_stack *stack,
                            const struct session_request *request,
                            struct policy_explanation *ret_explanation);
void policy_explanation_done(struct policy_explanation *e);
void policy_decision_done(struct policy_decision *d);

/* Input of policy_argv. Borrowed; @args and @template may be NULL. */
struct policy_command {
	const struct runner *runner;
	const struct template *template; /* knows where programs are */
	char *const *command;
	const char *source; /* file name of the code */
	char *const *args;
};
/** policy_argv - Return: owned. */
char **policy_argv(const struct policy_command *command) attr_must_check;
/** policy_check_name - check a file name of a request (FA-4). Return: 0 or -EINVAL. */
int policy_check_name(const char *name) attr_must_check;
