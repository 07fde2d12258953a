/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode.h"

#include "api/json/decode_fields.h"
#include "base/size.h"
#include <string.h>

#define SECURITY_MAX 4096

/* Kept and shown, not applied: it cannot weaken a box. */
static int take_security(const struct field_value *v)
{
	struct template_spec *spec = v->out;

	if (!json_is_object(v->value))
		return fields_wrong(v, "an object");
	spec->security_context = json_dumps(v->value, JSON_COMPACT | JSON_SORT_KEYS);
	if (!spec->security_context || strlen(spec->security_context) > SECURITY_MAX)
		return fields_wrong(v, "at most 4096 bytes");
	return 0;
}

static int refuse_max_output(const struct field_value *v)
{
	return error_field(v->err, v->path, "belongs to an execution");
}

/* clang-format off */
static const struct fields resources = {
	.rows = (const struct field[]){
		RESOURCE_ROWS(struct template_spec,),
		{"max_output", FIELD_CUSTOM, .check = refuse_max_output, .hidden = true},
		FIELDS_END,
	},
};

#define TEXT(title, member, ...) {title, FIELD_STRING, AT(struct template_spec, member), .max = 1024, __VA_ARGS__}
#define STRINGS(title, member, text) {title, FIELD_STRINGS, AT(struct template_spec, member), .description = text, .schema = "{\"maxItems\": 256}"}
#define TITLE_SCHEMA "{\"minLength\": 1, \"maxLength\": 255}"

/*
 * Clients know two forms: {image, default_resources, pre_installed_packages ...} and {image_url,
 * default_cpu_cores, default_memory_mb ...}. Both are accepted, also mixed, each value once:
 * default_resources must come before the single numbers.
 */
static const struct field rows[] = {
	TEXT("id", id, .required = true, .schema = "{\"maxLength\": null, \"pattern\": \"^[A-Za-z0-9_-]{1,64}$\"}"),
	TEXT("name", name, .required = true, .schema = TITLE_SCHEMA),
	TEXT("description", description),
	TEXT("image", image, .schema = TITLE_SCHEMA, .description = "host, a directory of the operator, or an imported template."),
	TEXT("image_url", image, .schema = TITLE_SCHEMA, .description = "Another name of image."),
	TEXT("base_image", base_image, .description = "For people."),
	TEXT("runtime_type", runtime_type, .description = "For people."),
	TEXT("language", language, .schema = "{\"maxLength\": null}", .description = "Default language of executions."),
	STRINGS("packages", packages, "Packages that the root must have: name or name==version, of Python or dpkg."),
	STRINGS("pre_installed_packages", packages, "Another name of packages."),
	STRINGS("preload", preload, "Modules that Python imports when the runner of a session starts."),
	{"env_vars", FIELD_ENV, AT(struct template_spec, env)},
	{"default_env_vars", FIELD_ENV, AT(struct template_spec, env), .description = "Another name of env_vars."},
	{"security_context", FIELD_CUSTOM, .check = take_security, .schema = "{\"type\": \"object\"}", .description = "Kept and shown. It never weakens the isolation of a box."},
	{"default_resources", FIELD_OBJECT, .fields = &resources},
	{"default_cpu_cores", FIELD_AMOUNT, AT(struct template_spec, cpu_millicores), .once = true, .min = 0.1, .max = 4, .unit = 1000, .what = "0.1 to 4 cores"},
	{"default_memory_mb", FIELD_INTEGER, AT(struct template_spec, memory_bytes), .once = true, .min = 128, .max = 8192, .unit = MIB},
	{"default_disk_mb", FIELD_INTEGER, AT(struct template_spec, disk_bytes), .once = true, .min = 256, .max = 51200, .unit = MIB},
	{"default_timeout", FIELD_SECONDS, AT(struct template_spec, timeout_us), .min = 60, .max = 3600, .what = "60 to 3600 seconds", .description = "Idle time-out of its sessions in seconds."},
	FIELDS_END,
};

const struct fields decode_template_fields = {
	.name = "TemplateRequest",
	.description = "A value that has two names may be given once.",
	.rows = rows,
};
const struct fields decode_template_change_fields = {
	.name = "TemplateChange",
	.description = "As TemplateRequest; the id, if given, must be that of the path.",
	.rows = rows,
	.flags = FIELDS_PARTIAL,
};
/* clang-format on */

int decode_template(const char *body, size_t len, bool partial, struct template_spec *ret_spec,
                    struct error *err)
{
	const struct fields *fields =
		partial ? &decode_template_change_fields : &decode_template_fields;

	if (fields_decode_text(fields, body, len, NULL, ret_spec, err) < 0)
		return -1;
	return partial || ret_spec->image ? 0 : error_field(err, "image", "is missing");
}
