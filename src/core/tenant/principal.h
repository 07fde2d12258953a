/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the caller of a request. Every object belongs to a tenant; for a caller, ids of other
 * tenants do not exist. Without keys, every caller is TENANT_DEFAULT.
 */

#include <stdint.h>

#define TENANT_DEFAULT  "default"
#define TENANT_NAME_MAX 64

/* Borrowed for the request. */
struct principal {
	const char *tenant;
	const char *key_id; /* NULL: no key */
	uint32_t scopes;    /* bits of enum scope, core/identity/scope.h */
};
