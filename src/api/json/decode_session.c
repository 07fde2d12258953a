/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode.h"

#include "api/json/decode_fields.h"
#include "api/json/dependencies.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/policy/policies.h"

static const char *const modes[] = {"ephemeral", "workspace", "persistent", NULL};
static_assert(ARRAY_SIZE(modes) == SESSION_MODE_COUNT + 1, "every mode has a word");

static int take_dependencies(const struct field_value *v)
{
	struct session_request *request = v->out;
	json_t *list = dependencies_read(v->path, v->value, v->err);
	size_t len;

	if (!list)
		return -1;
	request->dependencies = json_write(list, &len);
	return 0;
}

static int take_fail_on_error(const struct field_value *v)
{
	struct session_request *request = v->out;

	request->lacks_dependencies = !json_is_true(v->value);
	return 0;
}

static int take_mode(const struct field_value *v)
{
	((struct session_request *)v->out)->mode_soft = false;
	return 0;
}

static int refuse_max_output(const struct field_value *v)
{
	return error_field(v->err, v->path, "belongs to an execution, not to a session");
}

/* clang-format off */
#define DEPENDENCIES_SCHEMA \
	"{\"type\": \"array\", \"maxItems\": 50, \"items\": {\"type\": \"object\", \"required\": [\"name\"], \"additionalProperties\": false, \"properties\": " \
	"{\"name\": {\"type\": \"string\", \"pattern\": \"^[A-Za-z0-9._-]{1,100}$\"}, \"version\": {\"type\": [\"string\", \"null\"], \"examples\": [\"1.2\", \">=1.2,<2\"]}}}}"

/* How packages would be fetched is checked, without effect: the operator decides. */
#define INSTALL_ROWS(is_required) \
	{"dependencies", FIELD_CUSTOM, .required = is_required, .check = take_dependencies, .schema = DEPENDENCIES_SCHEMA, \
	 .description = "Python packages. Those that the box has count as installed; others are installed from the registry, if the operator allows it."}, \
	{"fail_on_dependency_error", FIELD_BOOL, .check = take_fail_on_error, .schema = "{\"default\": true}", .description = "The session fails if a package is missing."}, \
	{"install_timeout", FIELD_NUMBER, .min = 30, .max = 1800, .what = "30 to 1800 seconds"}, \
	{"allow_version_conflicts", FIELD_BOOL}, \
	{"python_package_index_url", FIELD_STRING, AT(struct session_request, package_index_url), .max = 512}

static const struct fields resources = {
	.flags = FIELDS_LOOSE,
	.description = "Requested resources. Beyond the maximum of policy and operator they are clamped to it, or it is a 403.",
	.rows = (const struct field[]){
		RESOURCE_ROWS(struct session_request,),
		{"max_output", FIELD_CUSTOM, .check = refuse_max_output, .hidden = true},
		FIELDS_END,
	},
};

const struct fields decode_session_fields = {
	.name = "SessionRequest",
	.flags = FIELDS_LOOSE,
	.rows = (const struct field[]){
		{"id", FIELD_STRING, AT(struct session_request, id), .valid = decode_is_id, .what = ID_TEXT, .schema = ID_SCHEMA},
		{"session_id", FIELD_STRING, AT(struct session_request, id), .valid = decode_is_id, .what = ID_TEXT, .schema = ID_SCHEMA, .description = "Another name of id."},
		{"mode", FIELD_ENUM, AT(struct session_request, mode), .words = modes, .check = take_mode,
		 .description = "What stays from one execution to the next: nothing (ephemeral), files (workspace), or files, variables and processes (persistent). Default: workspace; ephemeral where the policy allows nothing else."},
		{"language", FIELD_STRING, AT(struct session_request, language), .min = 1, .schema = "{\"minLength\": null, \"default\": \"python\"}"},
		INSTALL_ROWS(false),
		{"event", FIELD_OBJECT, .description = "Accepted and ignored."},
		{"cpu", FIELD_CPU, AT(struct session_request, cpu_millicores), .description = "As resources.cpu."},
		{"memory", FIELD_SIZE, AT(struct session_request, memory_bytes), .description = "As resources.memory."},
		{"disk", FIELD_SIZE, AT(struct session_request, disk_bytes), .description = "As resources.disk."},
		{"template_id", FIELD_STRING, AT(struct session_request, template_id), .min = 1, .schema = "{\"minLength\": null, \"default\": \"python-basic\"}"},
		PACKAGE_ROWS(struct session_request,),
		{"agent_id", FIELD_STRING, AT(struct session_request, agent_id), .valid = decode_is_id, .what = ID_TEXT, .schema = ID_SCHEMA, .description = "An idle persistent session of the same agent is reused."},
		{"env_vars", FIELD_ENV, AT(struct session_request, env)},
		{"timeout", FIELD_SECONDS, AT(struct session_request, idle_timeout_us), .min = 1, .max = DECODE_SESSION_MAX, .description = "Idle time-out in seconds."},
		{"timeout_sec", FIELD_SECONDS, AT(struct session_request, idle_timeout_us), .once = true, .min = 1, .max = DECODE_SESSION_MAX, .description = "Another name of timeout."},
		{"default_timeout_sec", FIELD_SECONDS, AT(struct session_request, idle_timeout_us), .once = true, .min = 1, .max = DECODE_SESSION_MAX, .description = "Another name of timeout."},
		{"lifetime", FIELD_SECONDS, AT(struct session_request, lifetime_us), .min = 1, .max = DECODE_SESSION_MAX, .description = "Seconds after which the session ends."},
		{"resources", FIELD_OBJECT, .fields = &resources},
		POLICY_ROWS(struct session_request,),
		FIELDS_END,
	},
};

const struct fields decode_install_fields = {
	.name = "InstallRequest",
	.flags = FIELDS_LOOSE,
	.rows = (const struct field[]){INSTALL_ROWS(true), FIELDS_END},
};

static const struct fields no_fields = {.rows = (const struct field[]){FIELDS_END}};
/* clang-format on */

static int check_language(const char *language, struct error *err)
{
	return str_equal(language, "python")
	               ? 0
	               : error_field(err, "dependencies",
	                             "are Python packages, and language is '%.40s'", language);
}

int decode_session(const char *body, size_t len, json_t *warnings,
                   struct session_request *ret_request, struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);

	return object ? decode_session_object(object, warnings, ret_request, err) : -1;
}

int decode_session_object(const json_t *object, json_t *warnings,
                          struct session_request *ret_request, struct error *err)
{
	/* The control plane's own clients know no modes: their sessions keep the workspace. */
	ret_request->mode = SESSION_WORKSPACE;
	ret_request->mode_soft = true;
	if (fields_decode_open(&decode_session_fields, object, NULL, warnings, ret_request, err) <
	    0)
		return -1;
	return ret_request->dependencies && ret_request->language
	               ? check_language(ret_request->language, err)
	               : 0;
}

int decode_install(const char *body, size_t len, const char *language, json_t *warnings,
                   struct session_request *ret_request, struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);

	if (!object || fields_decode_open(&decode_install_fields, object, NULL, warnings,
	                                  ret_request, err) < 0)
		return -1;
	return check_language(language, err);
}

int decode_nothing(const char *body, size_t len, json_t *warnings, struct error *err)
{
	cleanup_json json_t *object = len > 0 ? json_read_object(body, len, err) : NULL;

	if (len == 0)
		return 0;
	return object ? fields_decode_open(&no_fields, object, NULL, warnings, NULL, err) : -1;
}
