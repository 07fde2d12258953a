/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: keys, tenants and principals as JSON. Never contains secrets. Returned objects are owned. */

#include "base/attr.h"
#include "core/identity/identity.h"
#include <jansson.h>

json_t *encode_key(const struct identity_key_info *info) attr_must_check;
/** encode_key_status - "active", "revoked" or "expired". */
const char *encode_key_status(const struct identity_key_info *info);
json_t *encode_tenant(const struct tenant *tenant) attr_must_check;
/** encode_principal - the caller; @tenant NULL: tenants are off. */
json_t *encode_principal(const struct principal *p, const struct tenant *tenant) attr_must_check;
