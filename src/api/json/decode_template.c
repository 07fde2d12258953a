/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_template.h"

#include "api/json/decode_fields.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include <math.h>
#include <string.h>

/*
 * Two forms are known to clients: {image, default_resources, pre_installed_packages ...} and
 * {image_url, default_cpu_cores, default_memory_mb ...}. Both are taken, mixed too; what is said
 * twice in both must be said once.
 */

#define MIB         (1024ULL * 1024)
#define JSON_MAX    4096
#define TEXT_MAX    1024
#define TIMEOUT_MIN 60
#define TIMEOUT_MAX 3600

static struct template_spec *spec_of(struct decode *d)
{
	return d->more;
}

static int take_text(struct decode *d, const char *path, const json_t *value, char **ret_text)
{
	if (*ret_text)
		return error_field(d->err, path, "is given under another name too");
	if (decode_string(d, path, value, ret_text) < 0)
		return -1;
	if (strlen(*ret_text) > TEXT_MAX)
		return decode_wrong(d, path, "at most 1024 bytes");
	return 0;
}

#define TEXT(name, field)                                                                          \
	static int take_##name(struct decode *d, const char *path, const json_t *value)            \
	{                                                                                          \
		return take_text(d, path, value, &spec_of(d)->field);                              \
	}

TEXT(id, id)
TEXT(name, name)
TEXT(description, description)
TEXT(image, image)
TEXT(base_image, base_image)
TEXT(runtime_type, runtime_type)
TEXT(language, language)

static int take_list(struct decode *d, const char *path, const json_t *value, char ***ret_list)
{
	size_t count = json_array_size(value);
	char item[sizeof(d->err->field)];

	if (*ret_list)
		return error_field(d->err, path, "is given under another name too");
	if (!json_is_array(value))
		return decode_wrong(d, path, "an array of strings");
	*ret_list = xcalloc(count + 1, sizeof(char *));
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(item, sizeof(item), "%s[%zu]", path, i);
		if (decode_string(d, item, json_array_get(value, i), &(*ret_list)[i]) < 0)
			return -1;
	}
	return 0;
}

static int take_packages(struct decode *d, const char *path, const json_t *value)
{
	return take_list(d, path, value, &spec_of(d)->packages);
}

static int take_preload(struct decode *d, const char *path, const json_t *value)
{
	return take_list(d, path, value, &spec_of(d)->preload);
}

static int take_env(struct decode *d, const char *path, const json_t *value)
{
	struct template_spec *spec = spec_of(d);

	if (spec->env)
		return error_field(d->err, path, "is given under another name too");
	if (decode_env(d, path, value) < 0)
		return -1;
	spec->env = TAKE_PTR(d->out->request.env);
	return 0;
}

/* Kept and shown; it cannot make a box weaker, so nothing in it is obeyed. */
static int take_security(struct decode *d, const char *path, const json_t *value)
{
	struct template_spec *spec = spec_of(d);

	if (!json_is_object(value))
		return decode_wrong(d, path, "an object");
	spec->security_context = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
	if (!spec->security_context || strlen(spec->security_context) > JSON_MAX)
		return decode_wrong(d, path, "at most 4096 bytes");
	return 0;
}

static int take_resources(struct decode *d, const char *path, const json_t *value)
{
	struct run_request *from = &d->out->request;
	struct template_spec *spec = spec_of(d);
	char field[sizeof(d->err->field)];

	if (decode_resources(d, path, value) < 0) {
		/* The shared table calls them "resources.": here they have a longer name. */
		if (str_has_prefix(d->err->field, "resources.") &&
		    str_format(field, sizeof(field), "default_%s", d->err->field) >= 0)
			memcpy(d->err->field, field, sizeof(field));
		return -1;
	}
	if (from->max_output_bytes)
		return error_field(d->err, "default_resources.max_output", "is of an execution");
	spec->memory_bytes = from->memory_bytes;
	spec->disk_bytes = from->disk_bytes;
	spec->cpu_millicores = from->cpu_millicores;
	spec->max_processes = from->max_processes;
	return 0;
}

/* A number in its range, times @unit. */
struct amount {
	double min, max, unit;
	const char *what;
	bool whole;
};

static int take_amount(struct decode *d, const char *path, const json_t *value,
                       const struct amount *amount, uint64_t *ret_value)
{
	double number = json_number_value(value);

	if (*ret_value)
		return error_field(d->err, path, "is given in default_resources too");
	if (amount->whole ? !json_is_integer(value) : !json_is_number(value))
		return decode_wrong(d, path, amount->what);
	if (!(number >= amount->min && number <= amount->max))
		return decode_wrong(d, path, amount->what);
	*ret_value = (uint64_t)llround(number * amount->unit);
	return 0;
}

static int take_cores(struct decode *d, const char *path, const json_t *value)
{
	static const struct amount cores = {0.1, 4, 1000, "0.1 to 4 cores", false};

	return take_amount(d, path, value, &cores, &spec_of(d)->cpu_millicores);
}

static int take_memory_mb(struct decode *d, const char *path, const json_t *value)
{
	static const struct amount memory = {128, 8192, MIB, "a whole number, 128 to 8192", true};

	return take_amount(d, path, value, &memory, &spec_of(d)->memory_bytes);
}

static int take_disk_mb(struct decode *d, const char *path, const json_t *value)
{
	static const struct amount disk = {256, 51200, MIB, "a whole number, 256 to 51200", true};

	return take_amount(d, path, value, &disk, &spec_of(d)->disk_bytes);
}

static int take_timeout(struct decode *d, const char *path, const json_t *value)
{
	static const struct amount timeout = {TIMEOUT_MIN, TIMEOUT_MAX, USEC_PER_SEC,
	                                      "60 to 3600 seconds", false};

	return take_amount(d, path, value, &timeout, &spec_of(d)->timeout_us);
}

/* default_resources first: the single numbers look whether it said the same. */
static const struct field template_fields[] = {
	{"id", take_id, false},
	{"name", take_name, false},
	{"description", take_description, false},
	{"image", take_image, false},
	{"image_url", take_image, false},
	{"base_image", take_base_image, false},
	{"runtime_type", take_runtime_type, false},
	{"language", take_language, false},
	{"packages", take_packages, false},
	{"pre_installed_packages", take_packages, false},
	{"preload", take_preload, false},
	{"env_vars", take_env, false},
	{"default_env_vars", take_env, false},
	{"security_context", take_security, false},
	{"default_resources", take_resources, false},
	{"default_cpu_cores", take_cores, false},
	{"default_memory_mb", take_memory_mb, false},
	{"default_disk_mb", take_disk_mb, false},
	{"default_timeout", take_timeout, false},
};

static int check_required(const struct template_spec *spec, struct error *err)
{
	if (!spec->id)
		return error_field(err, "id", "is missing");
	if (!spec->name)
		return error_field(err, "name", "is missing");
	if (!spec->image)
		return error_field(err, "image", "is missing");
	return 0;
}

int decode_template(const char *body, size_t len, bool partial, struct template_spec *ret_spec,
                    struct error *err)
{
	const struct fields fields = {"", template_fields, ARRAY_SIZE(template_fields)};
	cleanup_decoded_exec struct decoded_exec common = {0};
	struct decode d = {.out = &common, .more = ret_spec, .err = err};
	cleanup_json json_t *object = json_read_object(body, len, err);

	if (!object || decode_fields(&d, &fields, object) < 0)
		return -1;
	return partial ? 0 : check_required(ret_spec, err);
}
