/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/json.h"
#include "base/parse.h"
#include <string.h>

static json_t *scope_list(uint32_t scopes)
{
	json_t *list = json_array();

	for (int i = 0; i < SCOPE_COUNT; i++) {
		const char *name = scope_name((enum scope)i);

		if (name && (scopes & SCOPE_BIT(i)))
			json_append(list, json_string(name));
	}
	return list;
}

const char *encode_key_status(const struct identity_key_info *info)
{
	if (info->active)
		return "active";
	return info->revoked_ms ? "revoked" : "expired";
}

json_t *encode_key(const struct identity_key_info *info)
{
	json_t *j = json_object();

	json_set(j, "id", json_string(info->id));
	json_set(j, "tenant", json_string(info->tenant));
	json_set(j, "name", json_text(info->name, strlen(info->name)));
	json_set(j, "status", json_string(encode_key_status(info)));
	json_set(j, "scopes", scope_list(info->scopes));
	json_set(j, "created_at", encode_moment(info->created_ms));
	json_set(j, "expires_at", encode_moment(info->expires_ms));
	json_set(j, "revoked_at", encode_moment(info->revoked_ms));
	json_set(j, "last_used_at", encode_moment(info->last_used_ms));
	return j;
}

static json_t *quota_value(enum quota quota, uint64_t value)
{
	char text[32];

	if (value == QUOTA_UNSET)
		return json_null();
	if (!quota_is_size(quota) || value == 0)
		return json_integer((json_int_t)value);
	format_size(value, text, sizeof(text));
	return json_string(text);
}

static json_t *view_quotas(const uint64_t values[QUOTA_COUNT])
{
	json_t *j = json_object();

	for (int i = 0; i < QUOTA_COUNT; i++)
		json_set(j, quota_name((enum quota)i), quota_value((enum quota)i, values[i]));
	return j;
}

static json_t *view_usage(const struct tenant *t)
{
	json_t *j = json_object();

	json_set(j, "sessions", json_integer((json_int_t)t->sessions));
	json_set(j, "executions", json_integer((json_int_t)t->queue.counts[SCHEDULER_RUNNING]));
	json_set(j, "queued", json_integer((json_int_t)t->queued));
	json_set(j, "memory", quota_value(QUOTA_MEMORY, t->queue.memory_bytes));
	json_set(j, "templates", json_integer((json_int_t)t->templates));
	json_set(j, "images", quota_value(QUOTA_IMAGES, t->image_bytes));
	json_set(j, "secrets", json_integer((json_int_t)t->secrets));
	return j;
}

json_t *encode_tenant(const struct tenant *t)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(t->name));
	json_set(j, "policy", t->policy[0] ? json_string(t->policy) : json_null());
	json_set(j, "quotas", view_quotas(t->quotas));
	json_set(j, "limits", view_quotas(t->limits));
	json_set(j, "usage", view_usage(t));
	json_set(j, "created_at", encode_moment(t->created_ms));
	json_set(j, "updated_at", encode_moment(t->updated_ms));
	return j;
}

json_t *encode_principal(const struct principal *p, const struct tenant *t)
{
	json_t *j = json_object();

	json_set(j, "tenant", json_string(p->tenant));
	json_set(j, "key_id", p->key_id ? json_string(p->key_id) : json_null());
	json_set(j, "scopes", scope_list(p->scopes));
	json_set(j, "limits", t ? view_quotas(t->limits) : json_null());
	json_set(j, "usage", t ? view_usage(t) : json_null());
	return j;
}
