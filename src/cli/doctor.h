/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the checks of "millibox doctor": the output of the engine's probe, with the loss and the
 * remedy if a check fails. Pure.
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
	char *value; /* owned: the finding */
	enum check_state state;
};

struct checks {
	struct check *items; /* owned */
	size_t count;
};

/* When strict mode requires a check. */
enum check_need {
	NEED_NEVER,
	NEED_ALWAYS,
	NEED_AS_ROOT, /* optional for ordinary users: results name the missing layer */
	CHECK_NEED_COUNT
};

/* Explains a failed check. */
struct advice {
	const char *name;
	enum check_need need;
	const char *loss;   /* the effect */
	const char *remedy; /* what to do */
};

void checks_done(struct checks *checks);
#define cleanup_checks attr_cleanup(checks_done)
void checks_add(struct checks *checks, const char *name, enum check_state state, const char *value);
const struct check *checks_find(const struct checks *checks, const char *name);
/**
 * checks_parse - parse lines "name TAB ok|missing|info TAB value". Return: 0, or -EPROTO for a
 * malformed line or too many lines.
 */
int checks_parse(struct checks *checks, char *text) attr_must_check;
const char *check_state_name(enum check_state state);
/** advice_find - Return: 0, or -ENOENT: no advice for this check. */
int advice_find(const char *name, struct advice *ret_advice) attr_must_check;
/**
 * checks_advise - advice_find for @check; if it failed only because there is no user namespace, the
 * remedy refers to the check "user".
 */
int checks_advise(const struct checks *checks, const struct check *check,
                  struct advice *ret_advice) attr_must_check;
/** check_is_optional - whether @check is a missing layer that strict mode does not require. */
bool check_is_optional(const struct check *check, bool is_root);
/** checks_are_strict - whether every required check is ok. */
bool checks_are_strict(const struct checks *checks, bool is_root);
