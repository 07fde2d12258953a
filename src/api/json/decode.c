/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_fields.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/id.h"
#include "core/policy/policies.h"
#include <string.h>

#define ID_MAX 64

const char *const decode_networks[] = {"none", "allowlist", "bridge", "host", NULL};
static_assert(ARRAY_SIZE(decode_networks) == BOX_NETWORK_COUNT + 1, "every network has a word");

bool decode_is_id(const char *text)
{
	return id_is_valid(text, ID_MAX);
}

int decode_check_code(const struct field_value *v)
{
	const struct decode_limits *limits = v->ctx;
	char what[64];

	if (json_string_length(v->value) <= limits->max_code_bytes)
		return 0;
	(void)snprintf(what, sizeof(what), "exceeds %zu bytes", limits->max_code_bytes);
	return fields_refuse(v, ERR_TOO_LARGE, what);
}

/* Its content is decoded as a field of its own. */
static int take_file(const struct field_value *v, const char *name, json_t *content)
{
	static const struct field row = {"content", FIELD_BYTES,
	                                 AT_LEN(struct run_request_file, data, len)};
	struct run_request *request = &((struct decoded_exec *)v->out)->request;
	struct run_request_file *file = &request->files[request->files_count++];
	char path[sizeof(v->err->field)];
	struct field_value item = *v;

	(void)snprintf(path, sizeof(path), "%s.%s", v->path, name);
	file->name = xstrdup(name);
	item.field = &row;
	item.path = path;
	item.value = content;
	item.out = file;
	return field_take(&item);
}

int decode_files(const struct field_value *v)
{
	struct decoded_exec *d = v->out;
	json_t *files = (json_t *)(uintptr_t)v->value, *content;
	const char *name;

	if (!json_is_object(files))
		return fields_wrong(v, "an object of name: content");
	if (json_object_size(files) == 0)
		return 0;
	d->request.files = xcalloc(json_object_size(files), sizeof(struct run_request_file));
	json_object_foreach (files, name, content)
		if (take_file(v, name, content) < 0)
			return -1;
	return 0;
}

/* clang-format off */
static const struct fields resources = {
	.description = "Requested resources. Below the minimum is a 400. Beyond the maximum of policy and operator they are clamped to it, or it is a 403 where the policy says so: see `/api/v1/policy/explain`.",
	.rows = (const struct field[]){
		RESOURCE_ROWS(struct decoded_exec, request.),
		{"max_output", FIELD_SIZE, AT(struct decoded_exec, request.max_output_bytes)},
		FIELDS_END,
	},
};

const struct fields decode_exec_fields = {
	.name = "ExecuteRequest",
	.description = "Either `language` and `code`, or `handler_code`.",
	.rows = (const struct field[]){
		{"language", FIELD_STRING, AT(struct decoded_exec, request.language), .min = 1, .schema = "{\"minLength\": null, \"examples\": [\"python\", \"shell\"]}"},
		PROGRAM_ROWS,
		{"timeout", FIELD_SECONDS, AT(struct decoded_exec, request.timeout_us), .schema = "{\"minimum\": 0.001, \"maximum\": 1000000000}",
		 .description = "Seconds. Beyond the maximum of policy and operator it is clamped to it, or it is a 403 where the policy says so."},
		{"resources", FIELD_OBJECT, .fields = &resources},
		{"template_id", FIELD_STRING, AT(struct decoded_exec, request.template_id), .min = 1, .schema = NAME_SCHEMA, .description = "Default: the root of the host and the defaults of the operator."},
		POLICY_ROWS(struct decoded_exec, request.),
		{"stream", FIELD_BOOL, AT(struct decoded_exec, stream), .schema = "{\"default\": false}"},
		FIELDS_END,
	},
};
/* clang-format on */

int decode_exec(const char *body, size_t len, const struct decode_limits *limits,
                struct decoded_exec *ret_exec, struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);

	return object ? decode_exec_object(object, limits, ret_exec, err) : -1;
}

int decode_exec_object(const json_t *object, const struct decode_limits *limits,
                       struct decoded_exec *ret_exec, struct error *err)
{
	if (fields_decode(&decode_exec_fields, object, limits, ret_exec, err) < 0)
		return -1;
	/* A handler is Python. */
	if (!ret_exec->request.language && !ret_exec->event)
		return error_field(err, "language", "is missing");
	return decode_handler_end(ret_exec, err);
}

void decoded_exec_done(struct decoded_exec *d)
{
	run_request_done(&d->request);
	json_decref(d->event);
	json_decref(d->context);
	*d = (struct decoded_exec){0};
}
