/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/resource.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "json/json_dump.h"

/* jansson returns NULL for invalid UTF-8. */
static json_t *require_utf8(json_t *value, const struct resource_field *f, struct error *err)
{
	if (!value)
		(void)error_set(err, ERR_INVALID, 0, "--%s: not UTF-8 text", f->option);
	return value;
}

static json_t *make_text(const void *slot, const struct resource_field *f, struct error *err)
{
	return require_utf8(json_string(*(const char *const *)slot), f, err);
}

static json_t *make_words(const void *slot, const struct resource_field *f, struct error *err)
{
	const char *text = *(const char *const *)slot;
	json_auto_t *list = json_array();

	for (;; text++) {
		size_t len = strcspn(text, ",");

		if (json_array_append_new(list, json_stringn(text, len)) < 0)
			return require_utf8(NULL, f, err);
		text += len;
		if (!*text)
			return TAKE_PTR(list);
	}
}

static json_t *make_bool(const void *slot, const struct resource_field *f, struct error *err)
{
	const char *text = *(const char *const *)slot;
	bool value;

	if (parse_bool(text, &value) == 0)
		return json_boolean(value);
	(void)error_set(err, ERR_INVALID, 0, "--%s: '%.40s': must be yes or no", f->option, text);
	return NULL;
}

static json_t *make_quota(const void *slot, const struct resource_field *f, struct error *err)
{
	const char *text = *(const char *const *)slot;
	uint64_t number;

	if (str_equal(text, "default"))
		return json_null();
	if (parse_u64(text, &number) == 0 && number <= INT64_MAX)
		return json_integer((json_int_t)number);
	return make_text(slot, f, err);
}

static json_t *make_list(const void *slot, const struct resource_field *f, struct error *err)
{
	const struct option_list *words = slot;
	json_auto_t *list = json_array();

	for (size_t i = 0; i < words->count; i++)
		if (json_array_append_new(list, json_string(words->items[i])) < 0)
			return require_utf8(NULL, f, err);
	return TAKE_PTR(list);
}

static json_t *make_env(const void *slot, const struct resource_field *f, struct error *err)
{
	const struct option_list *env = slot;
	json_auto_t *object = json_object();

	for (size_t i = 0; i < env->count; i++) {
		const char *pair = env->items[i], *equals = strchr(pair, '=');
		cleanup_free char *name = equals ? xstrndup(pair, (size_t)(equals - pair)) : NULL;

		if (!name || !*name) {
			(void)error_set(err, ERR_INVALID, 0, "--%s: '%s' is not NAME=VALUE",
			                f->option, pair);
			return NULL;
		}
		if (json_object_set_new(object, name, json_string(equals + 1)) < 0)
			return require_utf8(NULL, f, err);
	}
	return TAKE_PTR(object);
}

static json_t *make_number(const void *slot, const struct resource_field *f attr_unused,
                           struct error *err attr_unused)
{
	return json_integer((json_int_t) * (const uint64_t *)slot);
}

static json_t *make_size(const void *slot, const struct resource_field *f attr_unused,
                         struct error *err attr_unused)
{
	char size[32];

	format_size(*(const uint64_t *)slot, size, sizeof(size));
	return json_string(size);
}

static json_t *make_cores(const void *slot, const struct resource_field *f attr_unused,
                          struct error *err attr_unused)
{
	char cores[32];

	format_cpu(*(const uint64_t *)slot, cores, sizeof(cores));
	return json_string(cores);
}

static json_t *make_seconds(const void *slot, const struct resource_field *f attr_unused,
                            struct error *err attr_unused)
{
	return json_real((double)*(const uint64_t *)slot / USEC_PER_SEC);
}

static bool has_text(const void *slot)
{
	return *(const char *const *)slot != NULL;
}

static bool has_items(const void *slot)
{
	return ((const struct option_list *)slot)->count > 0;
}

static bool has_number(const void *slot)
{
	return *(const uint64_t *)slot > 0;
}

static const struct {
	bool (*is_given)(const void *slot);
	json_t *(*make)(const void *slot, const struct resource_field *f, struct error *err);
} kinds[] = {
	[RESOURCE_TEXT] = {has_text, make_text},
	[RESOURCE_WORDS] = {has_text, make_words},
	[RESOURCE_BOOL] = {has_text, make_bool},
	[RESOURCE_QUOTA] = {has_text, make_quota},
	[RESOURCE_LIST] = {has_items, make_list},
	[RESOURCE_ENV] = {has_items, make_env},
	[RESOURCE_NUMBER] = {has_number, make_number},
	[RESOURCE_SIZE] = {has_number, make_size},
	[RESOURCE_CORES] = {has_number, make_cores},
	[RESOURCE_SECONDS] = {has_number, make_seconds},
};
static_assert(ARRAY_SIZE(kinds) == RESOURCE_KIND_COUNT, "one row per kind");

static int add_field(json_t *body, const struct resource_field *f, const void *values,
                     struct error *err)
{
	const void *slot = (const char *)values + f->offset;
	json_t *object = f->within ? json_object_get(body, f->within) : body;
	json_auto_t *value = NULL;
	json_t *list;

	if (!kinds[f->kind].is_given(slot))
		return 0;
	value = kinds[f->kind].make(slot, f, err);
	if (!value)
		return -1;
	if (!object) {
		object = json_object();
		(void)json_object_set_new(body, f->within, object);
	}
	/* Two options can fill one list. */
	list = json_object_get(object, f->key);
	if ((json_is_array(list) ? json_array_extend(list, value)
	                         : json_object_set(object, f->key, value)) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "build the request");
	return 0;
}

int resource_add_fields(json_t *body, const struct resource_field *fields, size_t count,
                        const void *values, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (add_field(body, &fields[i], values, err) < 0)
			return -1;
	return 0;
}

char *resource_body(const struct resource *resource, const void *values, const char *name,
                    struct error *err)
{
	json_auto_t *body = json_object();

	if (name && resource->name_key &&
	    json_object_set_new(body, resource->name_key, json_string(name)) < 0) {
		(void)error_set(err, ERR_INVALID, 0, "the %s is not UTF-8 text", resource->what);
		return NULL;
	}
	if (resource_add_fields(body, resource->fields, resource->fields_count, values, err) < 0)
		return NULL;
	return json_dump_text(body, JSON_COMPACT);
}
