/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a key may do. Each route names the scope it needs; "admin" includes all others. Pure.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scope {
	SCOPE_UNSET,   /* needs SCOPE_ADMIN, to be safe */
	SCOPE_PUBLIC,  /* no key required */
	SCOPE_ANY,     /* any key */
	SCOPE_READ,    /* what the tenant has, except files */
	SCOPE_EXECUTE, /* with and without a session */
	SCOPE_SESSIONS,
	SCOPE_FILES, /* of sessions */
	SCOPE_TEMPLATES,
	SCOPE_POLICY,  /* ask what the policy decides */
	SCOPE_METRICS, /* of the daemon */
	SCOPE_SECRETS, /* set and delete secrets; never read them */
	SCOPE_ADMIN,   /* tenants, keys, the daemon */
	SCOPE_COUNT
};

#define SCOPE_BIT(scope) (UINT32_C(1) << (scope))
/* Default of a new key. */
#define SCOPES_USER                                                                                \
	(SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_EXECUTE) | SCOPE_BIT(SCOPE_SESSIONS) |            \
	 SCOPE_BIT(SCOPE_FILES) | SCOPE_BIT(SCOPE_TEMPLATES) | SCOPE_BIT(SCOPE_POLICY))
#define SCOPES_ALL                                                                                 \
	(SCOPES_USER | SCOPE_BIT(SCOPE_METRICS) | SCOPE_BIT(SCOPE_SECRETS) | SCOPE_BIT(SCOPE_ADMIN))

/** scope_name - NULL: a key cannot have it. */
const char *scope_name(enum scope scope);
/** scope_find - Return: SCOPE_COUNT: a key cannot have it. */
enum scope scope_find(const char *name);
bool scope_allows(uint32_t scopes, enum scope needed);
#define SCOPES_TEXT_LEN 96
/** scopes_format - "read,execute". */
void scopes_format(uint32_t scopes, char ret_text[SCOPES_TEXT_LEN]);
/** scopes_parse - comma-separated; at least one. */
int scopes_parse(const char *text, uint32_t *ret_scopes, struct error *err) attr_must_check;
