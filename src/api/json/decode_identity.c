/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_identity.h"

#include "api/json/decode_fields.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/id.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/identity/scope.h"
#include <string.h>

#define NAME_TEXT "1 to 64 letters, digits, '_' or '-'"

void decoded_key_done(struct decoded_key *d)
{
	free(d->tenant);
	free(d->name);
	*d = (struct decoded_key){0};
}

void decoded_tenant_done(struct decoded_tenant *d)
{
	free(d->name);
	free(d->policy);
	*d = (struct decoded_tenant){0};
}

static int take_name(struct decode *d, const char *path, const json_t *value, char **ret_name)
{
	if (decode_string(d, path, value, ret_name) < 0)
		return -1;
	return id_is_valid(*ret_name, TENANT_NAME_MAX) ? 0 : decode_wrong(d, path, NAME_TEXT);
}

static int take_key_tenant(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_key *key = d->more;

	return take_name(d, path, value, &key->tenant);
}

static int take_key_name(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_key *key = d->more;

	return decode_string(d, path, value, &key->name);
}

static int take_scopes(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_key *key = d->more;
	const json_t *item;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) == 0 ||
	    json_array_size(value) > SCOPE_COUNT)
		return decode_wrong(d, path, "a list of scopes, each once");
	json_array_foreach ((json_t *)(uintptr_t)value, i, item) {
		enum scope scope =
			json_is_string(item) ? scope_find(json_string_value(item)) : SCOPE_COUNT;

		if (scope == SCOPE_COUNT)
			return decode_wrong(d, path,
			                    "a list of read, execute, sessions, files, templates, "
			                    "policy, metrics, admin");
		key->scopes |= SCOPE_BIT(scope);
	}
	return 0;
}

static int take_expiry(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_key *key = d->more;

	if (decode_seconds(d, path, value, &key->expires_us) < 0)
		return -1;
	return key->expires_us ? 0 : decode_wrong(d, path, "more than 0 seconds");
}

static const struct field key_fields[] = {
	{"tenant", take_key_tenant, true},
	{"name", take_key_name, false},
	{"scopes", take_scopes, false},
	{"expires_in", take_expiry, false},
};

static int decode_object(struct decode *d, const char *body, size_t len,
                         const struct fields *fields)
{
	cleanup_json json_t *object = json_read_object(body, len, d->err);

	return object ? decode_fields(d, fields, object) : -1;
}

int decode_key(const char *body, size_t len, struct decoded_key *ret_key, struct error *err)
{
	const struct fields fields = {"", key_fields, ARRAY_SIZE(key_fields)};
	struct decode d = {.more = ret_key, .err = err};

	return decode_object(&d, body, len, &fields);
}

static int take_tenant_name(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_tenant *tenant = d->more;

	return take_name(d, path, value, &tenant->name);
}

/* "" is the daemon's default one. */
static int take_policy(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_tenant *tenant = d->more;

	if (json_is_string(value) && json_string_length(value) == 0) {
		tenant->policy = xstrdup("");
		return 0;
	}
	return take_name(d, path, value, &tenant->policy);
}

static enum quota find_quota(const char *name)
{
	int i = 0;

	while (i < QUOTA_COUNT && !str_equal(quota_name((enum quota)i), name))
		i++;
	return (enum quota)i;
}

static bool read_number(const json_t *value, bool is_size, uint64_t *ret_number)
{
	if (json_is_string(value))
		return is_size && strlen(json_string_value(value)) == json_string_length(value) &&
		       parse_size(json_string_value(value), ret_number) == 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret_number = (uint64_t)json_integer_value(value);
	return true;
}

/* A number, 0 for none, or null for what the settings say. */
static int take_quota(struct decode *d, const char *name, const json_t *value)
{
	struct decoded_tenant *tenant = d->more;
	enum quota quota = find_quota(name);
	uint64_t number = QUOTA_UNSET;
	char path[sizeof(d->err->field)];

	if (str_format(path, sizeof(path), "quotas.%s", name) < 0 || quota == QUOTA_COUNT)
		return decode_refuse(d, ERR_UNKNOWN_FIELD, "quotas", "has a quota nobody knows");
	if (!json_is_null(value) &&
	    (!read_number(value, quota_is_size(quota), &number) || number > quota_max(quota)))
		return decode_wrong(d, path,
		                    quota_is_size(quota)
		                            ? "a size, 0 for no bound, or null for the default"
		                            : "a number, 0 for no bound, or null for the default");
	tenant->quotas[quota] = number;
	tenant->has_quota[quota] = true;
	return 0;
}

static int take_quotas(struct decode *d, const char *path, const json_t *value)
{
	const char *name;
	json_t *number;

	if (!json_is_object(value))
		return decode_wrong(d, path, "an object");
	json_object_foreach ((json_t *)(uintptr_t)value, name, number) {
		if (take_quota(d, name, number) < 0)
			return -1;
	}
	return 0;
}

static const struct field tenant_fields[] = {
	{"policy", take_policy, false},
	{"quotas", take_quotas, false},
	{"name", take_tenant_name, true},
};

int decode_tenant(const char *body, size_t len, bool is_new, struct decoded_tenant *ret_tenant,
                  struct error *err)
{
	/* The name is the last row. */
	const struct fields fields = {"", tenant_fields, ARRAY_SIZE(tenant_fields) - !is_new};
	struct decode d = {.more = ret_tenant, .err = err};

	return decode_object(&d, body, len, &fields);
}
