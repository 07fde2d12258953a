/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a key may do. A scope is a group of routes; each route names the one it needs.
 * "admin" is for the daemon itself (tenants, keys, global metrics) and includes the others;
 * "read" sees everything of its tenant and changes nothing. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scope {
	SCOPE_UNSET,     /* a route that names none: needs SCOPE_ADMIN, to be safe */
	SCOPE_PUBLIC,    /* no key required */
	SCOPE_ANY,       /* any key */
	SCOPE_READ,      /* look at what the tenant has, except files */
	SCOPE_EXECUTE,   /* run code, with and without a session */
	SCOPE_SESSIONS,  /* create, change and end sessions */
	SCOPE_FILES,     /* read and write files of sessions */
	SCOPE_TEMPLATES, /* create and delete templates */
	SCOPE_POLICY,    /* ask what the policy decides */
	SCOPE_METRICS,   /* metrics of the daemon */
	SCOPE_ADMIN,     /* tenants, keys, the daemon */
	SCOPE_COUNT
};

#define SCOPE_BIT(scope) (UINT32_C(1) << (scope))
/* Default of a new key: everything except the daemon itself. */
#define SCOPES_USER                                                                                \
	(SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_EXECUTE) | SCOPE_BIT(SCOPE_SESSIONS) |            \
	 SCOPE_BIT(SCOPE_FILES) | SCOPE_BIT(SCOPE_TEMPLATES) | SCOPE_BIT(SCOPE_POLICY))
#define SCOPES_ALL (SCOPES_USER | SCOPE_BIT(SCOPE_METRICS) | SCOPE_BIT(SCOPE_ADMIN))

/** scope_name - NULL for those that a key cannot have. */
const char *scope_name(enum scope scope);
/** scope_find - Return: SCOPE_COUNT for those that a key cannot have. */
enum scope scope_find(const char *name);
/** scope_allows - whether @scopes suffice for a route that needs @needed. */
bool scope_allows(uint32_t scopes, enum scope needed);
#define SCOPES_TEXT_LEN 96
/** scopes_format - "read,execute". */
void scopes_format(uint32_t scopes, char ret_text[SCOPES_TEXT_LEN]);
/** scopes_parse - names separated by commas; at least one. */
int scopes_parse(const char *text, uint32_t *ret_scopes, struct error *err) attr_must_check;
