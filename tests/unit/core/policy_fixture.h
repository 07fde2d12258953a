/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: two policies, a request and what they decide, for tests of core/policy. */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/policy/policies.h"
#include "core/policy/policy.h"
#include "core/run/run.h"
#include "core/session/session.h"
#include "core/template/images.h"
#include "core/template/template.h"
#include "core_fixture.h"
#include "gateway/spec.h"
#include "wire/layer.h"

#define SEC 1000000ULL

struct fixture {
	struct config *config;
	struct runners *runners;
	struct driver driver;
	struct policy_rules rules;
	struct policy *own, *chosen; /* references */
	struct run_request request;  /* strings are not owned here */
	struct session_request session;
	struct policy_explanation result;
};

static inline int setup(void **state)
{
	struct fixture *f = NEW(struct fixture);
	struct error err = {0};

	f->config = config_load(NULL, NULL, 0, &err);
	f->runners = fixture_runners();
	f->driver = (struct driver){.name = "native",
	                            .caps = {.layers = LAYERS_ALL,
	                                     .has_roots = true,
	                                     .has_packages = true,
	                                     .has_zygotes = true}};
	f->rules = (struct policy_rules){f->config, f->runners, &f->driver, 4, NULL};
	f->request.language = (char *)"demo";
	f->request.code = (char *)"x";
	f->request.code_len = 1;
	f->session.language = (char *)"demo";
	*state = f;
	return f->config ? 0 : -1;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	policy_explanation_done(&f->result);
	policy_unref(f->own);
	policy_unref(f->chosen);
	runners_free(f->runners);
	config_free(f->config);
	free(f);
	return 0;
}

static inline struct policy *parse(const char *name, const char *text)
{
	cleanup_free char *whole = xasprintf("name: %s\n%s", name, text);
	struct error err = {0};
	struct policy *policy = policy_parse(whole, strlen(whole), name, &err);

	if (!policy)
		fail_msg("%s", err.msg);
	return policy;
}

static inline void use(struct fixture *f, const char *own, const char *chosen)
{
	policy_unref(f->own);
	policy_unref(f->chosen);
	f->own = own ? parse("own", own) : NULL;
	f->chosen = chosen ? parse("chosen", chosen) : NULL;
}

static inline struct policy_explanation *ask(struct fixture *f)
{
	const struct policy_stack stack = {f->own, f->chosen};

	policy_explanation_done(&f->result);
	f->result = (struct policy_explanation){0};
	policy_explain(&f->rules, &stack, &f->request, &f->result);
	return &f->result;
}

static inline struct policy_explanation *ask_session(struct fixture *f)
{
	const struct policy_stack stack = {f->own, f->chosen};

	policy_explanation_done(&f->result);
	f->result = (struct policy_explanation){0};
	policy_explain_session(&f->rules, &stack, &f->session, &f->result);
	return &f->result;
}

static inline void expect_rule(const struct policy_rule *rule, enum policy_by by,
                               const char *policy, const char *path)
{
	if (rule->by != by || !str_equal(rule->path, path) ||
	    !str_equal(rule->policy ? rule->policy : "", policy))
		fail_msg("by %s '%s' %s", policy_by_name(rule->by),
		         rule->policy ? rule->policy : "", rule->path);
}

static inline void expect_allowed(const struct policy_explanation *e)
{
	if (!e->allowed)
		fail_msg("%s: %s", e->err.field, e->err.msg);
}

static inline void expect_refused(const struct policy_explanation *e, enum error_code code,
                                  const char *field, const char *what)
{
	assert_false(e->allowed);
	assert_null(e->decision.argv);
	if (e->err.code != code || !str_equal(e->err.field, field) || !strstr(e->err.msg, what))
		fail_msg("%s: '%s' %s", error_name(e->err.code), e->err.field, e->err.msg);
}
