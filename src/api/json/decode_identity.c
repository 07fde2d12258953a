/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode.h"

#include "api/json/decode_fields.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/identity/scope.h"
#include <string.h>

void decoded_key_done(struct decoded_key *d)
{
	fields_done(&decode_key_fields, d);
	*d = (struct decoded_key){0};
}

void decoded_tenant_done(struct decoded_tenant *d)
{
	fields_done(&decode_tenant_fields, d);
	*d = (struct decoded_tenant){0};
}

static int take_scopes(const struct field_value *v)
{
	struct decoded_key *key = v->out;

	if (!json_is_array(v->value) || json_array_size(v->value) == 0 ||
	    json_array_size(v->value) > SCOPE_COUNT)
		return fields_wrong(v, "a list of scopes, each once");
	for (size_t i = 0; i < json_array_size(v->value); i++) {
		const char *name = json_string_value(json_array_get(v->value, i));
		enum scope scope = name ? scope_find(name) : SCOPE_COUNT;

		if (scope == SCOPE_COUNT)
			return fields_wrong(v, "a list of read, execute, sessions, files, "
			                       "templates, policy, metrics, secrets, admin");
		key->scopes |= SCOPE_BIT(scope);
	}
	return 0;
}

/* "" is the daemon's default policy. */
static bool is_policy(const char *name)
{
	return name[0] == '\0' || decode_is_id(name);
}

static bool read_quota(const json_t *value, bool is_size, uint64_t *ret_number)
{
	if (json_is_string(value))
		return is_size && strlen(json_string_value(value)) == json_string_length(value) &&
		       parse_size(json_string_value(value), ret_number) == 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret_number = (uint64_t)json_integer_value(value);
	return true;
}

/* 0: no bound; null: the settings' default. */
static int take_quota(const struct field_value *v)
{
	struct decoded_tenant *tenant = v->out;
	uint64_t number = QUOTA_UNSET;
	int quota = 0;

	while (!str_equal(quota_name((enum quota)quota), v->field->name))
		quota++;
	if (!json_is_null(v->value) &&
	    (!read_quota(v->value, quota_is_size((enum quota)quota), &number) ||
	     number > quota_max((enum quota)quota)))
		return fields_wrong(v,
		                    quota_is_size((enum quota)quota)
		                            ? "a size, 0 for no bound, or null for the default"
		                            : "a number, 0 for no bound, or null for the default");
	tenant->quotas[quota] = number;
	tenant->has_quota[quota] = true;
	return 0;
}

/* clang-format off */
#define SCOPES_SCHEMA "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/components/schemas/Scope\"}}"

const struct fields decode_key_fields = {
	.name = "KeyRequest",
	.rows = (const struct field[]){
		{"tenant", FIELD_STRING, AT(struct decoded_key, tenant), .required = true, .valid = decode_is_id, .what = ID_TEXT, .schema = ID_SCHEMA},
		{"name", FIELD_STRING, AT(struct decoded_key, name), .schema = "{\"maxLength\": 100}", .description = "For people."},
		{"scopes", FIELD_CUSTOM, .check = take_scopes, .schema = SCOPES_SCHEMA, .description = "Default: all but `metrics` and `admin`."},
		{"expires_in", FIELD_SECONDS, AT(struct decoded_key, expires_us), .schema = "{\"exclusiveMinimum\": 0, \"maximum\": 1000000000}", .description = "Seconds from now."},
		FIELDS_END,
	},
};

#define COUNT_SCHEMA(most) "{\"type\": [\"integer\", \"null\"], \"minimum\": 0, \"maximum\": " #most "}"
#define SIZE_SCHEMA "{\"type\": [\"integer\", \"string\", \"null\"]}"
#define QUOTA(title, how, text) {title, FIELD_CUSTOM, .check = take_quota, .schema = how, .description = text}

static const struct fields quotas = {
	.name = "Quotas",
	.description = "0 is no bound; null is the default of the settings `quota.*`.",
	.rows = (const struct field[]){
		QUOTA("sessions", COUNT_SCHEMA(65536), "Sessions that are not terminated."),
		QUOTA("executions", COUNT_SCHEMA(65536), "Executions that run at the same time; more are queued."),
		QUOTA("queued", COUNT_SCHEMA(1000000), "Executions in the queue; more are refused."),
		QUOTA("memory", SIZE_SCHEMA, "Memory limits of all boxes together."),
		QUOTA("requests_per_second", COUNT_SCHEMA(1000000), NULL),
		QUOTA("burst", COUNT_SCHEMA(1000000), NULL),
		QUOTA("templates", COUNT_SCHEMA(65536), "Templates of the tenant, without the built-in ones."),
		QUOTA("images", SIZE_SCHEMA, "Imported images on the disk, together."),
		QUOTA("secrets", COUNT_SCHEMA(65536), "Secrets of the tenant."),
		FIELDS_END,
	},
};

#define TENANT_ROWS \
	{"policy", FIELD_STRING, AT(struct decoded_tenant, policy), .valid = is_policy, .what = ID_TEXT, .schema = "{\"pattern\": \"^[A-Za-z0-9_-]{0,64}$\"}"}, \
	{"quotas", FIELD_OBJECT, .fields = &quotas}

const struct fields decode_tenant_fields = {
	.name = "TenantRequest",
	.rows = (const struct field[]){
		{"name", FIELD_STRING, AT(struct decoded_tenant, name), .required = true, .valid = decode_is_id, .what = ID_TEXT, .schema = ID_SCHEMA},
		TENANT_ROWS,
		FIELDS_END,
	},
};

const struct fields decode_tenant_change_fields = {
	.name = "TenantChange",
	.rows = (const struct field[]){TENANT_ROWS, FIELDS_END},
};
/* clang-format on */

int decode_key(const char *body, size_t len, struct decoded_key *ret_key, struct error *err)
{
	return fields_decode_text(&decode_key_fields, body, len, NULL, ret_key, err);
}

int decode_tenant(const char *body, size_t len, bool is_new, struct decoded_tenant *ret_tenant,
                  struct error *err)
{
	return fields_decode_text(is_new ? &decode_tenant_fields : &decode_tenant_change_fields,
	                          body, len, NULL, ret_tenant, err);
}
