/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode_session.h"

#include "api/json/decode_fields.h"
#include "api/json/json.h"
#include "api/op/dependencies.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

/* An id that goes into paths, logs and maps. */
static int take_id(struct decode *d, const char *path, const json_t *value, char **ret_id)
{
	free(*ret_id);
	*ret_id = NULL;
	if (decode_string(d, path, value, ret_id) < 0)
		return -1;
	if (!id_is_valid(*ret_id, SESSION_ID_MAX))
		return decode_wrong(d, path, "1 to 64 letters, digits, '_' or '-'");
	return 0;
}

static int take_session_id(struct decode *d, const char *path, const json_t *value)
{
	struct session_request *request = d->more;

	if (request->id)
		return error_field(d->err, path, "is given as id too");
	return take_id(d, path, value, &request->id);
}

static int take_agent_id(struct decode *d, const char *path, const json_t *value)
{
	struct session_request *request = d->more;

	return take_id(d, path, value, &request->agent_id);
}

static int take_mode(struct decode *d, const char *path, const json_t *value)
{
	struct session_request *request = d->more;
	const char *text = json_string_value(value);

	for (int mode = 0; text && mode < SESSION_MODE_COUNT; mode++) {
		const char *name = session_mode_name((enum session_mode)mode);

		if (strlen(name) == json_string_length(value) && str_equal(name, text)) {
			request->mode = (enum session_mode)mode;
			return 0;
		}
	}
	return decode_wrong(d, path, "\"ephemeral\" or \"persistent\"");
}

static int take_span(struct decode *d, const char *path, const json_t *value, uint64_t max,
                     uint64_t *ret_us)
{
	uint64_t us = 0;
	char what[64];

	if (decode_seconds(d, path, value, &us) < 0)
		return -1;
	if (us < USEC_PER_SEC || us > max * USEC_PER_SEC) {
		(void)snprintf(what, sizeof(what), "1 to %llu seconds", (unsigned long long)max);
		return decode_wrong(d, path, what);
	}
	*ret_us = us;
	return 0;
}

static int take_idle_timeout(struct decode *d, const char *path, const json_t *value)
{
	struct session_request *request = d->more;

	return take_span(d, path, value, DECODE_SESSION_MAX, &request->idle_timeout_us);
}

static int take_lifetime(struct decode *d, const char *path, const json_t *value)
{
	struct session_request *request = d->more;

	return take_span(d, path, value, DECODE_SESSION_MAX, &request->lifetime_us);
}

static int take_dependencies(struct decode *d, const char *path, const json_t *value)
{
	struct session_request *request = d->more;
	json_t *list = dependencies_read(path, value, d->err);
	size_t len;

	if (!list)
		return -1;
	request->dependencies = json_write(list, &len);
	return 0;
}

static int take_fail_on_error(struct decode *d, const char *path, const json_t *value)
{
	struct session_request *request = d->more;
	bool fail;

	if (decode_bool(d, path, value, &fail) < 0)
		return -1;
	request->lacks_dependencies = !fail;
	return 0;
}

/* What says how packages would be fetched is checked, and then there is nothing to do with it. */
static int check_install_timeout(struct decode *d, const char *path, const json_t *value)
{
	if (!json_is_number(value) || json_number_value(value) < 30 ||
	    json_number_value(value) > 1800)
		return decode_wrong(d, path, "30 to 1800 seconds");
	return 0;
}

static int check_bool(struct decode *d, const char *path, const json_t *value)
{
	bool ignored;

	return decode_bool(d, path, value, &ignored);
}

static int check_index_url(struct decode *d, const char *path, const json_t *value)
{
	if (!json_is_string(value) || json_string_length(value) > 512)
		return decode_wrong(d, path, "a string of at most 512 bytes");
	return 0;
}

static int check_event(struct decode *d, const char *path, const json_t *value)
{
	return json_is_object(value) ? 0 : decode_wrong(d, path, "an object");
}

static const struct field session_fields[] = {
	{"dependencies", take_dependencies, false},
	{"fail_on_dependency_error", take_fail_on_error, false},
	{"install_timeout", check_install_timeout, false},
	{"allow_version_conflicts", check_bool, false},
	{"python_package_index_url", check_index_url, false},
	{"event", check_event, false},
	{"cpu", decode_cpu, false},
	{"memory", decode_memory, false},
	{"disk", decode_disk, false},
	{"id", take_session_id, false},
	{"session_id", take_session_id, false},
	{"mode", take_mode, false},
	{"language", decode_language, false},
	{"agent_id", take_agent_id, false},
	{"template_id", decode_template_id, false},
	{"env_vars", decode_env, false},
	{"timeout", take_idle_timeout, false},
	{"lifetime", take_lifetime, false},
	{"resources", decode_resources, false},
	{"network", decode_network, false},
	{"policy", decode_policy, false},
};

static int decode_object(const char *body, size_t len, struct decode *d,
                         const struct fields *fields)
{
	cleanup_json json_t *object = json_read_object(body, len, d->err);

	return object ? decode_fields(d, fields, object) : -1;
}

int decode_session(const char *body, size_t len, struct session_request *ret_request,
                   struct error *err)
{
	cleanup_json json_t *object = json_read_object(body, len, err);

	return object ? decode_session_object(object, ret_request, err) : -1;
}

int decode_session_object(const json_t *object, struct session_request *ret_request,
                          struct error *err)
{
	const struct fields fields = {"", session_fields, ARRAY_SIZE(session_fields)};
	cleanup_decoded_exec struct decoded_exec common = {0};
	struct run_request *from = &common.request;
	struct decode d = {.out = &common, .more = ret_request, .err = err};

	if (decode_fields(&d, &fields, object) < 0)
		return -1;
	if (from->max_output_bytes)
		return error_field(err, "resources.max_output",
		                   "is of an execution, not of a session");
	if (ret_request->dependencies && from->language && !str_equal(from->language, "python"))
		return error_field(err, "dependencies",
		                   "are Python packages, and language is '%.40s'", from->language);
	ret_request->language = TAKE_PTR(from->language);
	ret_request->env = TAKE_PTR(from->env);
	ret_request->template_id = TAKE_PTR(from->template_id);
	ret_request->memory_bytes = from->memory_bytes;
	ret_request->disk_bytes = from->disk_bytes;
	ret_request->cpu_millicores = from->cpu_millicores;
	ret_request->max_processes = from->max_processes;
	ret_request->policy = TAKE_PTR(from->policy);
	ret_request->network = from->network;
	ret_request->network_asked = from->network_asked;
	return 0;
}

static const struct field install_fields[] = {
	{"dependencies", take_dependencies, true},
	{"fail_on_dependency_error", take_fail_on_error, false},
	{"install_timeout", check_install_timeout, false},
	{"allow_version_conflicts", check_bool, false},
	{"python_package_index_url", check_index_url, false},
};

int decode_install(const char *body, size_t len, const char *language,
                   struct session_request *ret_request, struct error *err)
{
	const struct fields fields = {"", install_fields, ARRAY_SIZE(install_fields)};
	struct decode d = {.more = ret_request, .err = err};

	if (decode_object(body, len, &d, &fields) < 0)
		return -1;
	if (!str_equal(language, "python"))
		return error_field(err, "dependencies",
		                   "are Python packages, and language is '%.40s'", language);
	return 0;
}

static int take_run_timeout(struct decode *d, const char *path, const json_t *value)
{
	return take_span(d, path, value, DECODE_RUN_MAX, &d->out->request.timeout_us);
}

static int take_wait(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_run *run = d->more;

	return decode_bool(d, path, value, &run->wait);
}

/* The other way round. */
static int take_async(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_run *run = d->more;
	bool async;

	if (decode_bool(d, path, value, &async) < 0)
		return -1;
	run->wait |= !async;
	return 0;
}

static int take_stdin_open(struct decode *d, const char *path, const json_t *value)
{
	return decode_bool(d, path, value, &d->out->request.stdin_open);
}

static const struct field run_fields[] = {
	{"code", decode_code, false},           {"handler_code", decode_handler_code, false},
	{"event", decode_event, false},         {"context", decode_context, false},
	{"language", decode_language, false},   {"stdin", decode_stdin, false},
	{"stdin_open", take_stdin_open, false}, {"args", decode_args, false},
	{"files", decode_files, false},         {"env_vars", decode_env, false},
	{"timeout", take_run_timeout, false},   {"wait", take_wait, false},
	{"stream", decode_stream, false},       {"async_mode", take_async, false},
};

int decode_run(const char *body, size_t len, const struct decode_limits *limits,
               struct decoded_run *ret_run, struct error *err)
{
	const struct fields fields = {"", run_fields, ARRAY_SIZE(run_fields)};
	struct decode d = {.limits = limits, .out = &ret_run->exec, .more = ret_run, .err = err};

	if (decode_object(body, len, &d, &fields) < 0)
		return -1;
	if (ret_run->needs_language && !ret_run->exec.request.language)
		return error_field(err, "language", "is missing");
	return decode_handler_end(&d);
}

void decoded_run_done(struct decoded_run *d)
{
	decoded_exec_done(&d->exec);
	*d = (struct decoded_run){0};
}

static int take_data(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_input *input = d->more;

	return decode_bytes(d, path, value, &input->data, &input->len);
}

static int take_end(struct decode *d, const char *path, const json_t *value)
{
	struct decoded_input *input = d->more;

	return decode_bool(d, path, value, &input->end);
}

static const struct field input_fields[] = {
	{"data", take_data, false},
	{"end", take_end, false},
};

int decode_input(const char *body, size_t len, struct decoded_input *ret_input, struct error *err)
{
	const struct fields fields = {"", input_fields, ARRAY_SIZE(input_fields)};
	struct decode d = {.more = ret_input, .err = err};

	if (decode_object(body, len, &d, &fields) < 0)
		return -1;
	if (!ret_input->data && !ret_input->end)
		return error_field(err, "data", "is missing");
	return 0;
}

void decoded_input_done(struct decoded_input *d)
{
	free(d->data);
	*d = (struct decoded_input){0};
}

int decode_nothing(const char *body, size_t len, struct error *err)
{
	const struct fields fields = {"", NULL, 0};
	struct decode d = {.err = err};

	return len == 0 ? 0 : decode_object(body, len, &d, &fields);
}
