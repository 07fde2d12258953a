/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode.h"

#include "api/json/decode_fields.h"
#include "api/json/json.h"
#include "base/size.h"
#include "base/str.h"
#include "core/config/engines.h"
#include "json/json_dump.h"
#include <string.h>

#define SECURITY_MAX 4096

/* Kept and shown, not applied: it cannot weaken a box. */
static int take_security(const struct field_value *v)
{
	struct template_spec *spec = v->out;

	if (!json_is_object(v->value))
		return fields_wrong(v, "an object");
	spec->security_context = json_dump_text(v->value, JSON_COMPACT | JSON_SORT_KEYS);
	if (!spec->security_context || strlen(spec->security_context) > SECURITY_MAX)
		return fields_wrong(v, "at most 4096 bytes");
	return 0;
}

static int refuse_max_output(const struct field_value *v)
{
	return error_field(v->err, v->path, "belongs to an execution");
}

/* Whether it is configured shows when a box is made: engines come and go. */
static int check_engine(const struct field_value *v)
{
	const char *name = json_string_value(v->value);

	return engine_is_name(name) || str_equal(name, ENGINE_AUTO)
	               ? 0
	               : error_field(v->err, v->path,
	                             "must be an engine's name (letters a to z, digits, -), or "
	                             "'" ENGINE_AUTO "'");
}

static int check_active(const struct field_value *v)
{
	return json_is_true(v->value)
	               ? 0
	               : error_field(v->err, v->path, "must be true: delete a template instead");
}

/* A change may say no. */
static int take_system_packages(const struct field_value *v)
{
	struct template_spec *spec = v->out;

	spec->system_packages = json_is_true(v->value) ? TEMPLATE_YES : TEMPLATE_NO;
	return 0;
}

/* Those of the control plane. */
static const char *const runtimes[] = {"python3.11", "nodejs20", "java17", "go1.21", NULL};

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
#define SECONDS(title, ...) {title, FIELD_SECONDS, AT(struct template_spec, timeout_us), .min = 60, .max = 3600, .what = "60 to 3600 seconds", __VA_ARGS__}
#define TITLE(title, member, ...) {title, FIELD_STRING, AT(struct template_spec, member), .min = 1, .max = 255, __VA_ARGS__}

/*
 * Clients know two forms: {image, default_resources, pre_installed_packages ...} and {image_url,
 * default_cpu_cores, default_memory_mb ...}. Both are accepted, also mixed, each value once:
 * default_resources must come before the single numbers.
 */
static const struct field rows[] = {
	TEXT("id", id, .required = true, .schema = "{\"maxLength\": null, \"pattern\": \"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$\"}"),
	TITLE("name", name, .required = true),
	TEXT("description", description),
	TITLE("image", image, .description = "host, a directory of the operator, or an imported template."),
	TITLE("image_url", image, .description = "Another name of image."),
	TEXT("base_image", base_image, .description = "For people."),
	{"runtime_type", FIELD_WORD, AT(struct template_spec, runtime_type), .words = runtimes, .description = "For people."},
	{"engine", FIELD_STRING, AT(struct template_spec, engine), .min = 1, .max = 31, .check = check_engine, .schema = ENGINE_SCHEMA, .description = "Who makes its boxes, if the request does not say it: an engine of `GET /api/v1/runtimes`, or `auto`."},
	{"min_isolation", FIELD_WORD, AT(struct template_spec, min_isolation), .words = decode_grades, .description = "Least grade of isolation of its boxes."},
	TEXT("language", language, .schema = "{\"maxLength\": null}", .description = "Default language of executions."),
	STRINGS("packages", packages, "Packages: name or name==version. Those that the root lacks are installed from the registry of the language."),
	{"lock", FIELD_STRING, AT(struct template_spec, lock), .min = 1, .max = 1048576, .description = "Instead of packages: the text of a lock file (requirements.txt with hashes, package-lock.json, Cargo.toml and Cargo.lock, go.mod and go.sum, pom.xml, packages.lock.json), or what a layer shows as its lock. Of several files, each follows a line `==> NAME <==`."},
	{"run", FIELD_STRING, AT(struct template_spec, run), .min = 1, .max = 65536, .description = "Shell script to run after the installation, in the same box. What it writes to the directory $LAYER is in /opt/millibox/packages/run."},
	TEXT("manager", manager, .description = "Package manager; default: that of the language."),
	STRINGS("pre_installed_packages", packages, "Another name of packages."),
	{"system_packages", FIELD_BOOL, .check = take_system_packages, .schema = "{\"default\": false}", .description = "With packages on the root `host`: programs also find those that the host has, which may not fit. Otherwise they find only those that were installed, as in a virtual environment. Those of an image are always found."},
	STRINGS("preload", preload, "Modules that Python imports when the runner of a session starts."),
	{"env_vars", FIELD_ENV, AT(struct template_spec, env)},
	{"default_env_vars", FIELD_ENV, AT(struct template_spec, env), .description = "Another name of env_vars."},
	{"security_context", FIELD_CUSTOM, .check = take_security, .schema = "{\"type\": \"object\"}", .description = "Kept and shown. It never weakens the isolation of a box."},
	{"default_resources", FIELD_OBJECT, .fields = &resources},
	{"default_cpu_cores", FIELD_AMOUNT, AT(struct template_spec, cpu_millicores), .once = true, .min = 0.1, .max = 4, .unit = 1000, .what = "0.1 to 4 cores"},
	{"default_memory_mb", FIELD_INTEGER, AT(struct template_spec, memory_bytes), .once = true, .min = 128, .max = 8192, .unit = MIB},
	{"default_disk_mb", FIELD_INTEGER, AT(struct template_spec, disk_bytes), .once = true, .min = 256, .max = 51200, .unit = MIB},
	SECONDS("default_timeout", .description = "Idle time-out of its sessions in seconds."),
	SECONDS("default_timeout_sec", .once = true, .description = "Another name of default_timeout."),
	SECONDS("timeout_sec", .once = true, .description = "Another name of default_timeout."),
	{"is_active", FIELD_BOOL, .check = check_active, .schema = "{\"default\": true}", .description = "Accepted; templates are always active."},
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

int decode_template(const char *body, size_t len, bool partial, json_t *warnings,
                    struct template_spec *ret_spec, struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);
	const struct fields *fields =
		partial ? &decode_template_change_fields : &decode_template_fields;

	if (!object || fields_decode_open(fields, object, NULL, warnings, ret_spec, err) < 0)
		return -1;
	return partial || ret_spec->image ? 0 : error_field(err, "image", "is missing");
}
