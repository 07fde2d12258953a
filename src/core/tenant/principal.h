/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: who asks. Everything a caller can name belongs to a tenant, and a caller sees only what
 * belongs to its own: another tenant's ids do not exist for it. A daemon without keys has one
 * tenant, TENANT_DEFAULT, and everybody who reaches it is that.
 */

#include <stdint.h>

#define TENANT_DEFAULT  "default"
#define TENANT_NAME_MAX 64

/* Borrowed for the request. */
struct principal {
	const char *tenant;
	const char *key_id; /* NULL: no key was needed */
	uint32_t scopes;    /* of enum scope, a bit each; see core/scope.h */
};
