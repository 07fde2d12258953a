/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include "api/json/json.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/size.h"
#include "core/language/runners.h"
#include "core/template/templates.h"
#include "core/template/toolchains.h"
#include <string.h>

static json_t *size_or_null(uint64_t bytes)
{
	char buf[32];

	if (bytes == 0)
		return json_null();
	format_size(bytes, buf, sizeof(buf));
	return json_string(buf);
}

static json_t *number_or_null(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

/* null: the operator's default. */
static void set_limits(json_t *j, const struct template_spec *spec)
{
	json_t *resources = json_object();
	char buf[32];

	format_cpu(spec->cpu_millicores, buf, sizeof(buf));
	json_set(resources, "cpu", spec->cpu_millicores ? json_string(buf) : json_null());
	json_set(resources, "memory", size_or_null(spec->memory_bytes));
	json_set(resources, "disk", size_or_null(spec->disk_bytes));
	json_set(resources, "max_processes", number_or_null(spec->max_processes));
	json_set(j, "default_resources", resources);
	json_set(j, "default_cpu_cores",
	         spec->cpu_millicores ? json_real((double)spec->cpu_millicores / 1000)
	                              : json_null());
	json_set(j, "default_memory_mb", number_or_null(spec->memory_bytes / MIB));
	json_set(j, "default_disk_mb", number_or_null(spec->disk_bytes / MIB));
	json_set(j, "default_timeout", number_or_null(spec->timeout_us / USEC_PER_SEC));
	json_set(j, "default_timeout_sec", number_or_null(spec->timeout_us / USEC_PER_SEC));
}

static void set_content(json_t *j, const struct template_spec *spec)
{
	json_t *packages = encode_texts(spec->packages);
	json_t *env = encode_variables(spec->env);

	json_set(j, "packages", json_incref(packages));
	json_set(j, "pre_installed_packages", packages);
	json_set(j, "manager", encode_text(spec->manager));
	json_set(j, "lock", encode_text(spec->lock));
	json_set(j, "run", encode_text(spec->run));
	json_set(j, "packages_bytes", number_or_null(spec->layer_bytes));
	json_set(j, "system_packages", json_boolean(spec->system_packages == TEMPLATE_YES));
	json_set(j, "preload", encode_texts(spec->preload));
	json_set(j, "env_vars", json_incref(env));
	json_set(j, "default_env_vars", env);
}

static json_t *view_languages(const struct toolchains *toolchains, const struct template *t,
                              const struct runners *runners)
{
	json_t *j = json_array();
	const struct runner *r;

	for (size_t i = 0; (r = runners_at(runners, i)); i++)
		if (toolchains_has(toolchains, t, r))
			json_append(j, encode_text(r->name));
	return j;
}

static json_t *parse_or_null(const char *json)
{
	json_t *j = json ? json_loads(json, 0, NULL) : NULL;

	return j ? j : json_null();
}

json_t *encode_template(const struct templates *all, const struct template *t,
                        const struct runners *runners)
{
	const struct template_spec *spec = &t->spec;
	json_t *j = json_object();

	json_set(j, "id", json_string(spec->id));
	json_set(j, "template_id", json_string(spec->id));
	json_set(j, "name", encode_text(spec->name));
	json_set(j, "description", encode_text(spec->description));
	json_set(j, "image", encode_text(spec->image));
	json_set(j, "image_url", encode_text(spec->image));
	json_set(j, "base_image", encode_text(spec->base_image));
	json_set(j, "runtime_type", encode_text(spec->runtime_type));
	json_set(j, "engine", encode_text(spec->engine));
	json_set(j, "min_isolation", encode_text(spec->min_isolation));
	json_set(j, "root", json_string(template_kind_name(t->kind)));
	json_set(j, "language", encode_text(spec->language));
	json_set(j, "languages", view_languages(templates_toolchains(all), t, runners));
	set_content(j, spec);
	set_limits(j, spec);
	json_set(j, "security_context", parse_or_null(spec->security_context));
	json_set(j, "image_config", parse_or_null(t->config));
	json_set(j, "built_in", json_boolean(template_is_builtin(t)));
	json_set(j, "is_active", json_true());
	json_set(j, "available", json_boolean(!t->problem));
	json_set(j, "reason", encode_text(t->problem));
	json_set(j, "sessions", json_integer((json_int_t)templates_sessions(all, t)));
	json_set(j, "created_at", encode_moment(t->created_ms));
	json_set(j, "updated_at", encode_moment(t->updated_ms));
	return j;
}
