/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: bodies about keys and tenants; see decode.h. Pure. */

#include "api/json/fields.h"
#include "base/attr.h"
#include "base/error.h"
#include "core/tenant/tenant.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const struct fields decode_key_fields, decode_tenant_fields, decode_tenant_change_fields;

/* Body of POST /keys. */
struct decoded_key {
	char *tenant, *name; /* owned; NULL: not given */
	uint32_t scopes;     /* 0: not given */
	uint64_t expires_us; /* from now; 0: never */
};

void decoded_key_done(struct decoded_key *d);
#define cleanup_decoded_key attr_cleanup(decoded_key_done)
int decode_key(const char *body, size_t len, struct decoded_key *ret_key,
               struct error *err) attr_must_check;

/* Body of POST /tenants and of PATCH /tenants/{id}. */
struct decoded_tenant {
	char *name, *policy; /* owned; NULL: not given */
	uint64_t quotas[QUOTA_COUNT];
	bool has_quota[QUOTA_COUNT];
};

void decoded_tenant_done(struct decoded_tenant *d);
#define cleanup_decoded_tenant attr_cleanup(decoded_tenant_done)
/** decode_tenant - @is_new: the name is required, else it is refused. */
int decode_tenant(const char *body, size_t len, bool is_new, struct decoded_tenant *ret_tenant,
                  struct error *err) attr_must_check;
