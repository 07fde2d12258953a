/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a key may do. A scope is a group of routes; each route names the one it needs. "admin"
 * is about the daemon (tenants, keys, everybody's numbers) and includes the others; "read" sees
 * everything its tenant has and changes nothing. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scope {
	SCOPE_UNSET,     /* of a route that names none: as SCOPE_ADMIN, to be safe */
	SCOPE_PUBLIC,    /* nobody is asked for a key */
	SCOPE_ANY,       /* a key is enough */
	SCOPE_READ,      /* look at what the tenant has, files apart */
	SCOPE_EXECUTE,   /* run code, with and without a session */
	SCOPE_SESSIONS,  /* make, change and end sessions */
	SCOPE_FILES,     /* read and write files of sessions */
	SCOPE_TEMPLATES, /* make and delete templates */
	SCOPE_POLICY,    /* ask what the policy decides */
	SCOPE_METRICS,   /* numbers of the daemon */
	SCOPE_ADMIN,     /* tenants, keys, the daemon */
	SCOPE_COUNT
};

#define SCOPE_BIT(scope) (UINT32_C(1) << (scope))
/* What a key has that was made without a list: everything but the daemon. */
#define SCOPES_USER                                                                                \
	(SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_EXECUTE) | SCOPE_BIT(SCOPE_SESSIONS) |            \
	 SCOPE_BIT(SCOPE_FILES) | SCOPE_BIT(SCOPE_TEMPLATES) | SCOPE_BIT(SCOPE_POLICY))
#define SCOPES_ALL (SCOPES_USER | SCOPE_BIT(SCOPE_METRICS) | SCOPE_BIT(SCOPE_ADMIN))

/** scope_name - of one that a key can have; NULL for the others. */
const char *scope_name(enum scope scope);
/** scope_find - Return: SCOPE_COUNT when no key can have it. */
enum scope scope_find(const char *name);
/** scope_allows - whether @scopes are enough for a route that needs @needed. */
bool scope_allows(uint32_t scopes, enum scope needed);
#define SCOPES_TEXT_LEN 96
/** scopes_format - "read,execute". */
void scopes_format(uint32_t scopes, char ret_text[SCOPES_TEXT_LEN]);
/** scopes_parse - names with commas between them; at least one. */
int scopes_parse(const char *text, uint32_t *ret_scopes, struct error *err) attr_must_check;
