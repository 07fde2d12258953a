/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/json.h"
#include "core/secret/secret.h"

json_t *encode_secret(const struct secret *secret, const char *status)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(secret->name));
	json_set(j, "status", json_string(status));
	json_set(j, "hosts", encode_texts(secret->hosts));
	json_set(j, "mode", json_string(secret_mode_name(secret->mode)));
	json_set(j, "header", json_string(secret->header));
	json_set(j, "format", json_string(secret->format));
	json_set(j, "env", secret->env ? json_string(secret->env) : json_null());
	json_set(j, "placeholder", json_string(secret->placeholder));
	json_set(j, "created_at", encode_moment(secret->created_ms));
	json_set(j, "updated_at", encode_moment(secret->updated_ms));
	return j;
}
