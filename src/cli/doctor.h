/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the findings of "millibox doctor": what the engine's probe printed, one check per line,
 * with what is lost without it and how to get it. Pure.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

enum check_state {
	CHECK_OK,
	CHECK_MISSING,
	CHECK_INFO, /* neither good nor bad */
	CHECK_STATE_COUNT
};

struct check {
	char *name;  /* owned */
	char *value; /* owned: what was found */
	enum check_state state;
};

struct checks {
	struct check *items; /* owned */
	size_t count;
};

/* When boxes cannot be built strictly without it. */
enum check_need {
	NEED_NEVER,
	NEED_ALWAYS,
	NEED_AS_ROOT, /* an ordinary user can do without: results say what is missing */
	CHECK_NEED_COUNT
};

/* What a person needs to know about a check that fails. */
struct advice {
	const char *name;
	enum check_need need;
	const char *loss;   /* what is lost without it */
	const char *remedy; /* the exact thing to do */
};

void checks_done(struct checks *checks);
#define cleanup_checks attr_cleanup(checks_done)
void checks_add(struct checks *checks, const char *name, enum check_state state, const char *value);
const struct check *checks_find(const struct checks *checks, const char *name);
/**
 * checks_parse - lines "name TAB ok|missing|info TAB value". Return: 0, or -EPROTO for a line of
 * another form or for more lines than a probe has.
 */
int checks_parse(struct checks *checks, char *text) attr_must_check;
const char *check_state_name(enum check_state state);
/** advice_find - Return: 0, or -ENOENT: a check without advice is shown all the same. */
int advice_find(const char *name, struct advice *ret_advice) attr_must_check;
/**
 * checks_advise - advice_find for @check among @checks: what could not even be tried, because there
 * is no user namespace to try it in, has the remedy of that.
 */
int checks_advise(const struct checks *checks, const struct check *check,
                  struct advice *ret_advice) attr_must_check;
/**
 * check_is_optional - @check is of a layer that is missing, and that strict boxes of this user can
 * do without.
 */
bool check_is_optional(const struct check *check, bool is_root);
/** checks_are_strict - whether boxes can be built with all that is required, by root or others. */
bool checks_are_strict(const struct checks *checks, bool is_root);
