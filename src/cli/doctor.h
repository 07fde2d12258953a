/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: checks of "millibox doctor": the engine's probe, with loss and remedy of each failure.
 */

#include "base/attr.h"
#include "wire/layer.h"
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
	char *value; /* owned */
	enum check_state state;
};

struct checks {
	struct check *items; /* owned */
	size_t count;
};

/* Which isolation requires a check; each includes those after it. */
enum check_need {
	NEED_NEVER,
	NEED_STRICT,
	NEED_ALWAYS, /* also best-effort */
	CHECK_NEED_COUNT
};

struct advice {
	const char *name;
	enum check_need need;
	const char *loss;
	char remedy[LAYER_REMEDY_MAX];
};

void checks_done(struct checks *checks);
#define cleanup_checks attr_cleanup(checks_done)
void checks_add(struct checks *checks, const char *name, enum check_state state, const char *value);
const struct check *checks_find(const struct checks *checks, const char *name);
/**
 * checks_parse - lines "name TAB ok|missing|info TAB value". Return: 0, or -EPROTO for a malformed
 * line or too many.
 */
int checks_parse(struct checks *checks, char *text) attr_must_check;
const char *check_state_name(enum check_state state);
/** advice_find - for a daemon that this user starts here. Return: 0, or -ENOENT. */
int advice_find(const char *name, struct advice *ret_advice) attr_must_check;
/**
 * checks_advise - advice_find for @check; if only the user namespace is missing, the remedy refers
 * to the check "user", whose own is that of the setting which takes it away.
 */
int checks_advise(const struct checks *checks, const struct check *check,
                  struct advice *ret_advice) attr_must_check;
/** checks_first_remedy - of what keeps every program from running. Return: whether there is one. */
bool checks_first_remedy(const struct checks *checks, struct advice *ret_advice);
/** check_is_optional - a missing layer that strict isolation does not require. */
bool check_is_optional(const struct check *check);
/** checks_meet - every check that @need (not NEED_NEVER) requires is ok. */
bool checks_meet(const struct checks *checks, enum check_need need);
