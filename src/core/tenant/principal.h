/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the caller of a request. Every object belongs to a tenant, and a caller sees only its own
 * tenant's: ids of other tenants do not exist for it. A daemon without keys has one tenant,
 * TENANT_DEFAULT, and every caller is that.
 */

#include <stdint.h>

#define TENANT_DEFAULT  "default"
#define TENANT_NAME_MAX 64

/* Borrowed for the request. */
struct principal {
	const char *tenant;
	const char *key_id; /* NULL: authenticated without a key */
	uint32_t scopes;    /* of enum scope, one bit each; see core/identity/scope.h */
};
