/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/durable_reply.h"
#include "api/json/decode.h"
#include "api/json/dependencies.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/lookup.h"
#include "api/op/install.h"
#include "api/op/session_install.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/session/session.h"
#include "core/template/wanted.h"
#include "http/server.h"
#include "http/status.h"
#include <string.h>

/*
 * Theory of operation. Two routes install packages into a session that lives. That of the control
 * plane takes Python's {"name", "version"} and answers with the session; ours takes the names of
 * any language's packages, or a lock, and answers with what was installed, as a stream if asked.
 */

struct packages_body {
	char *language, *lock;
	char **packages;
	bool stream;
};

/* clang-format off */
const struct fields v1_session_packages_fields = {
	.name = "SessionPackagesRequest",
	.description = "Packages to install into a session: `packages` or `lock`.",
	.rows = (const struct field[]){
		{"language", FIELD_STRING, AT(struct packages_body, language), .min = 1, .schema = "{\"minLength\": null}", .description = "Its package manager is used; default: the session's language."},
		{"packages", FIELD_STRINGS, AT(struct packages_body, packages), .schema = "{\"maxItems\": 256}", .description = "Names, like `numpy` or `numpy==2.1`."},
		{"lock", FIELD_STRING, AT(struct packages_body, lock), .min = 1, .max = WANTED_LOCK_MAX, .description = "Instead of packages: the text of a lock file, as of an execution."},
		{"stream", FIELD_BOOL, AT(struct packages_body, stream), .schema = "{\"default\": false}", .description = "The output of the package manager as events `install`, then `end` with the result."},
		FIELDS_END,
	},
};
/* clang-format on */

static int check_alive(const struct session_info *info, struct error *err)
{
	if (info->state != SESSION_TERMINATED && info->state != SESSION_FAILED)
		return 0;
	return error_set(err, ERR_CONFLICT, 0, "session %s is %s", info->id,
	                 session_state_name(info->state));
}

struct install_call {
	struct pending pending;
	struct router *r;
	const struct principal *who; /* the request's */
	char *session_id;            /* owned */
	json_t *wanted;              /* owned: as dependencies_read gives it */
	struct op_session_install *op;
	/* The control plane's. */
	char *index_url; /* owned; returned on request; NULL: none */
	bool lacks;      /* a failure is the session's, not the request's */
	/* Ours. */
	json_t *view; /* owned; NULL: the control plane's */
	struct install_stream stream;
};

static void install_call_free(struct install_call *call)
{
	free(call->session_id);
	free(call->index_url);
	json_decref(call->wanted);
	json_decref(call->view);
	free(call);
}

static struct install_call *install_call_new(struct router *r, const struct route_args *args,
                                             const struct session_info *info)
{
	struct install_call *call = NEW(struct install_call);

	*call = (struct install_call){
		.r = r, .who = args->principal, .session_id = xstrdup(info->id)};
	return call;
}

/* Return: NULL: the session is gone. */
static struct session *note_dependencies(const struct install_call *call, json_t *found)
{
	struct session *session =
		session_find(call->r->parts.sessions, call->who->tenant, call->session_id);
	struct session_info info = {0};
	cleanup_free char *text = NULL;

	if (!session) {
		json_decref(found);
		return NULL;
	}
	session_info(session, &info);
	if (call->index_url)
		json_set(found, "python_package_index_url", encode_text(call->index_url));
	text = dependencies_add(info.dependencies, found);
	session_set_dependencies(session, text);
	return session;
}

static void answer_gone(struct http_request *req)
{
	struct error err = {0};

	(void)error_set(&err, ERR_SESSION_NOT_FOUND, 0, "the session is gone");
	reply_error(req, &err);
}

static void answer_session(struct install_call *call, struct http_request *req, json_t *found)
{
	struct session *session = note_dependencies(call, found);

	if (session)
		durable_reply_session(req, session, HTTP_OK, encode_session(session));
	else
		answer_gone(req);
}

/* @lock, @folder: NULL: nothing was installed. */
static void answer_packages(struct install_call *call, struct http_request *req, const char *lock,
                            const char *folder)
{
	json_t *view = TAKE_PTR(call->view);

	json_set(view, "lock", lock ? json_text(lock, strlen(lock)) : json_null());
	json_set(view, "path", folder ? json_sprintf("/workspace/%s", folder) : json_null());
	if (call->stream.form == EVENT_FORM_NONE)
		reply_json(req, HTTP_OK, view);
	else
		install_stream_end(&call->stream, view);
}

static void on_installed(void *ctx, const char *lock, const char *folder)
{
	struct install_call *call = ctx;
	struct http_request *req = pending_resume(&call->pending);
	json_t *found = dependencies_installed(call->wanted, lock, folder);

	if (call->view) {
		(void)note_dependencies(call, found);
		answer_packages(call, req, lock, folder);
	} else {
		answer_session(call, req, found);
	}
	install_call_free(call);
}

static void on_output(void *ctx, const char *data, size_t len)
{
	struct install_call *call = ctx;

	install_stream_output(&call->stream, data, len);
}

static void on_install_failed(void *ctx, const struct error *err, const char *log)
{
	struct install_call *call = ctx;
	struct http_request *req = pending_resume(&call->pending);

	if (call->lacks)
		answer_session(call, req, dependencies_failed(call->wanted, err->msg));
	else if (call->stream.began)
		install_stream_fail(&call->stream, err, log);
	else
		reply_error_body(req, err, install_failure(req, err, log));
	install_call_free(call);
}

static void on_install_left(struct pending *p)
{
	struct install_call *call = CONTAINER_OF(p, struct install_call, pending);

	op_session_install_cancel(call->op);
	install_call_free(call);
}

/* Takes @call; without @lock, what it wants are @packages. */
static void start_install(struct install_call *call, struct http_request *req, const char *language,
                          char *const *packages, const char *lock)
{
	const struct op_session_install_events events = {call, on_output, on_installed,
	                                                 on_install_failed};
	const struct op_session_packages wanted = {.who = call->who,
	                                           .request_id = http_request_id(req),
	                                           .session_id = call->session_id,
	                                           .language = language,
	                                           .packages = packages,
	                                           .lock = lock};
	struct error err = {0};

	if (op_session_install(call->r, &wanted, &events, &call->op, &err) < 0) {
		install_call_free(call);
		reply_error(req, &err);
		return;
	}
	pending_wait(&call->pending, req, on_install_left);
}

void v1_session_install(struct router *r, struct http_request *req, const struct route_args *args)
{
	cleanup_session_request struct session_request request = {0};
	cleanup_str_list char **packages = NULL;
	cleanup_json json_t *resolved = NULL, *wanted = NULL;
	struct session_info info = {0};
	struct install_call *call;
	struct error err = {0}, missing = {0};
	size_t len;
	const char *body = http_body(req, &len);
	struct session *session = lookup_session(r, args, &err);
	bool installs;

	if (session)
		session_info(session, &info);
	if (!session || check_alive(&info, &err) < 0 ||
	    decode_install(body, len, info.language, args->warnings, &request, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	wanted = json_loads(request.dependencies, 0, NULL);
	resolved = dependencies_resolve(r->parts.packages, wanted, &missing);
	installs = error_is_set(&missing) && installs_can(r->parts.installs, info.language);
	if (error_is_set(&missing) && !installs && !request.lacks_dependencies) {
		reply_error(req, &missing);
		return;
	}
	call = install_call_new(r, args, &info);
	call->wanted = json_incref(wanted);
	call->index_url = request.package_index_url ? xstrdup(request.package_index_url) : NULL;
	call->lacks = request.lacks_dependencies;
	if (installs) {
		packages = dependencies_list(call->wanted);
		start_install(call, req, info.language, packages, NULL);
		return;
	}
	answer_session(call, req, TAKE_PTR(resolved));
	install_call_free(call);
}

/* Also checks what was decoded. */
static const struct runner *find_language(struct router *r, const struct packages_body *body,
                                          const struct session_info *info, struct error *err)
{
	const char *name = body->language ? body->language : info->language;
	const struct runner *runner = runners_find(r->parts.runners, name);

	if (!runner)
		(void)error_field(err, "language", "'%.32s' is not supported", name);
	else if (!manager_of(runner))
		(void)error_field(err, "language", "'%s' has no package manager here",
		                  runner->name);
	else if (!body->lock && (!body->packages || !body->packages[0]))
		(void)error_field(err, "packages", "is missing");
	else
		return runner;
	return NULL;
}

static void install_packages(struct install_call *call, struct http_request *req,
                             const struct packages_body *body, const struct runner *runner,
                             const struct session *session)
{
	const struct op_packages wanted = {.language = runner->name,
	                                   .packages = body->packages,
	                                   .lock = body->lock,
	                                   .template = session_template(session)};
	struct error err = {0};
	int lacking = op_packages_lacking(call->r, &wanted, &err);

	call->view = json_object();
	json_set(call->view, "session_id", json_string(call->session_id));
	json_set(call->view, "language", json_string(runner->name));
	json_set(call->view, "manager", json_string(manager_of(runner)->name));
	json_set(call->view, "packages", encode_texts(body->packages));
	call->wanted = dependencies_of(body->packages);
	if (lacking > 0) {
		start_install(call, req, runner->name, body->packages, body->lock);
		return;
	}
	if (lacking < 0)
		reply_error(req, &err);
	else
		answer_packages(call, req, NULL, NULL);
	install_call_free(call);
}

void v1_session_packages(struct router *r, struct http_request *req, const struct route_args *args)
{
	struct packages_body body = {0};
	struct session_info info = {0};
	const struct runner *runner = NULL;
	struct install_call *call;
	struct error err = {0};
	size_t len;
	const char *text = http_body(req, &len);
	struct session *session = lookup_session(r, args, &err);

	if (session)
		session_info(session, &info);
	if (session && check_alive(&info, &err) == 0 &&
	    fields_decode_text(&v1_session_packages_fields, text, len, NULL, &body, &err) == 0)
		runner = find_language(r, &body, &info, &err);
	if (runner) {
		call = install_call_new(r, args, &info);
		call->stream = (struct install_stream){
			.req = req,
			.form = event_form_choose(http_header(req, "Accept"), body.stream),
			.max_bytes = r->config->max_answers_bytes};
		install_packages(call, req, &body, runner, session);
	} else {
		reply_error(req, &err);
	}
	fields_done(&v1_session_packages_fields, &body);
}
