/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/decode_fields.h"
#include "api/json/encode.h"
#include "api/json/json.h"
#include "api/json/notes.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/session/session.h"
#include "core/template/templates.h"
#include <string.h>

/*
 * Theory of operation. A sandbox is a persistent session: files and interpreters stay until it is
 * terminated. Nothing is pulled from a registry: an image is a template's id, or one of the
 * families below, whose programs are in the host's root.
 */

#define WORKSPACE "/workspace"
#define TEXT_MAX  65536

/* Image families and their templates. */
static const struct {
	const char *family;
	const char *template_id;
} images[] = {
	{"ubuntu", TEMPLATE_DEFAULT},
	{"debian", TEMPLATE_DEFAULT},
	{"alpine", TEMPLATE_DEFAULT},
	{"python", TEMPLATE_DEFAULT},
	{"fedora", TEMPLATE_DEFAULT},
	{"golang", TEMPLATE_DEFAULT},
	{"rust", TEMPLATE_DEFAULT},
	{"gcc", TEMPLATE_DEFAULT},
	{"openjdk", TEMPLATE_DEFAULT},
	{"eclipse-temurin", TEMPLATE_DEFAULT},
	{"bash", "shell"},
	{"busybox", "shell"},
	{"node", "nodejs-basic"},
};

/* Where Docker looks for an image without a registry. */
static const char *const registries[] = {"docker.io/", "index.docker.io/", "library/"};

const char *tool_sandbox_status(const struct session *session)
{
	static const char *const words[] = {
		[SESSION_CREATING] = "creating",  [SESSION_READY] = "running",
		[SESSION_RUNNING] = "running",    [SESSION_PAUSED] = "stopped",
		[SESSION_TERMINATED] = "stopped", [SESSION_FAILED] = "error",
	};
	struct session_info info = {0};

	static_assert(ARRAY_SIZE(words) == SESSION_STATE_COUNT, "every state has its word");
	session_info(session, &info);
	return words[info.state];
}

static json_t *config_of(const json_t *whole, const json_t *notes)
{
	json_t *j = json_object(), *image = json_object_get(notes, "image");

	json_set(j, "image", json_incref(image ? image : json_object_get(whole, "template_id")));
	json_set(j, "template_id", json_incref(json_object_get(whole, "template_id")));
	json_set(j, "workspace_dir", json_string(WORKSPACE));
	json_set(j, "environment", json_incref(json_object_get(whole, "env_vars")));
	json_set(j, "resources", json_incref(json_object_get(whole, "resources")));
	json_set(j, "network_mode", json_incref(json_object_get(whole, "network")));
	return j;
}

/* The owner's notes and name. Return: owned. */
static json_t *metadata_of(const json_t *notes)
{
	json_t *metadata = json_object_get(notes, "metadata"),
	       *name = json_object_get(notes, "name");
	json_t *j = metadata ? json_copy(metadata) : json_object();

	if (name && !json_object_get(j, "name"))
		json_set(j, "name", json_incref(name));
	return j;
}

json_t *tool_view_sandbox(const struct session *session)
{
	cleanup_json json_t *whole = encode_session(session), *notes = NULL;
	struct session_info info = {0};
	json_t *j = json_object();

	session_info(session, &info);
	notes = notes_read(&info);
	json_set(j, "id", json_string(info.id));
	json_set(j, "container_id",
	         info.container_id ? json_string(info.container_id) : json_null());
	json_set(j, "status", json_string(tool_sandbox_status(session)));
	json_set(j, "working_dir", json_string(WORKSPACE));
	json_set(j, "created_at", json_incref(json_object_get(whole, "created_at")));
	json_set(j, "updated_at", json_incref(json_object_get(whole, "updated_at")));
	json_set(j, "config", config_of(whole, notes));
	json_set(j, "metadata", metadata_of(notes));
	return j;
}

/* "python:3.11-slim" is of "python". */
static bool is_of_family(const char *image, const char *family)
{
	size_t len = strlen(family);

	return strncmp(image, family, len) == 0 && strchr(":@", image[len]);
}

static const char *skip_registry(const char *image)
{
	for (size_t i = 0; i < ARRAY_SIZE(registries); i++)
		if (strncmp(image, registries[i], strlen(registries[i])) == 0)
			image += strlen(registries[i]);
	return image;
}

int tool_find_image(const struct router *r, const char *tenant, const char *image,
                    const char **ret_template, struct error *err)
{
	const struct templates *all = r->parts.templates;
	const char *name = skip_registry(image);

	*ret_template = image;
	if (!all || templates_find(all, tenant, image))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(images); i++)
		if (is_of_family(name, images[i].family)) {
			const struct template *t =
				templates_find(all, tenant, images[i].template_id);

			/* Its commands and files work without its language. */
			*ret_template = t && !t->problem ? t->spec.id : TEMPLATE_DEFAULT;
			return 0;
		}
	(void)error_field(err, "image",
	                  "'%.80s' is not a template of this server, which pulls no images: import "
	                  "it as a template, or use python-basic or shell",
	                  image);
	err->code = ERR_TEMPLATE_NOT_FOUND;
	return -1;
}

void tool_rename_field(struct error *err)
{
	static const struct {
		const char *field, *argument;
	} names[] = {
		{"env_vars", "environment"},
		{"network", "network_mode"},
		{"template_id", "image"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_equal(err->field, names[i].field)) {
			(void)!str_copy(err->field, sizeof(err->field), names[i].argument);
			return;
		}
}

enum box_network tool_ease_network(struct session_request *request)
{
	enum box_network asked = request->network;

	if (!request->network_asked || asked < BOX_NETWORK_BRIDGE)
		return BOX_NETWORK_NONE;
	request->network_most = true;
	return asked;
}

char *tool_network_note(enum box_network asked, const struct session *session)
{
	struct session_info info = {0};

	session_info(session, &info);
	if (info.network >= asked)
		return NULL;
	return xasprintf("network_mode: '%s' was requested, the policy grants '%s'%s",
	                 box_network_name(asked), box_network_name(info.network),
	                 info.network == BOX_NETWORK_NONE
	                         ? ": programs reach no other host"
	                         : ": programs reach the hosts that it names");
}

static int create_session(struct call *call, struct session **ret_session, struct error *err)
{
	struct session_request *request = &call->args.session;
	const char *template_id;
	bool reused;

	if (call->args.workspace_dir[0] != '/')
		return error_field(err, "workspace_dir", "must begin with '/'");
	if (tool_find_image(call->router, call->principal->tenant, call->args.image, &template_id,
	                    err) < 0)
		return -1;
	request->template_id = xstrdup(template_id);
	request->mode = SESSION_PERSISTENT;
	request->tenant = call->principal->tenant;
	request->key_id = call->principal->key_id;
	request->request_id = call->request_id;
	if (session_create(call->router->parts.sessions, request, ret_session, &reused, err) == 0)
		return 0;
	tool_rename_field(err);
	return -1;
}

static void add_note(struct buf *b, json_t *warnings, char *note)
{
	if (!note)
		return;
	(void)!buf_addf(b, "\n%s", note);
	json_append(warnings, json_text(note, strlen(note)));
	free(note);
}

/* What differs from the request, for text and result. */
static void add_notes(const struct call *call, const struct session *session,
                      enum box_network asked, struct buf *b, json_t *structured)
{
	const char *dir = call->args.workspace_dir;
	struct session_info info = {0};
	json_t *warnings = json_array();

	session_info(session, &info);
	if (!str_equal(dir, WORKSPACE) && !str_equal(dir, WORKSPACE "/"))
		add_note(b, warnings,
		         xasprintf("workspace_dir: '%.80s' was requested; files are in " WORKSPACE
		                   ", where programs start",
		                   dir));
	add_note(b, warnings, tool_network_note(asked, session));
	if (info.cuts) {
		json_set(structured, "limits", encode_cuts(info.cuts));
		(void)!buf_add_str(b, "\n");
		tool_add_cuts(b, info.cuts);
	}
	if (json_array_size(warnings) > 0)
		json_set(structured, "warnings", warnings);
	else
		json_decref(warnings);
}

void tool_create_sandbox(struct call *call)
{
	/* A model reads in the schema what it may ask for. */
	enum box_network asked =
		call->whole ? tool_ease_network(&call->args.session) : BOX_NETWORK_NONE;
	struct session *session = NULL;
	struct session_info info = {0};
	struct error err = {0};
	cleanup_buf struct buf b = BUF_INIT(TEXT_MAX);
	cleanup_free char *text = NULL;
	json_t *structured;

	if (create_session(call, &session, &err) < 0) {
		if (call->tool->run == tool_manage_session && str_equal(err.field, "image"))
			(void)!str_copy(err.field, sizeof(err.field), "template");
		tool_refuse(call, &err);
		return;
	}
	session_info(session, &info);
	notes_write(session, json_pack("{s:s}", "image", call->args.image));
	structured = tool_view_sandbox(session);
	/* It accepts calls from now on; they wait for its box. Clients check for this word. */
	if (info.state == SESSION_CREATING)
		json_set(structured, "status", json_string("running"));
	json_set(structured, "sandbox_id", json_string(info.id));
	json_set(structured, "session_id", json_string(info.id));
	json_set(structured, "image", json_string(call->args.image));
	json_set(structured, "workspace_dir", json_string(WORKSPACE));
	text = xasprintf("Created %s %s (template %s, network %s). Its files are in " WORKSPACE
	                 "; it ends when you end it or it is idle for %llu s.",
	                 tool_noun(call), info.id, info.template_id, box_network_name(info.network),
	                 (unsigned long long)(info.idle_timeout_us / 1000000));
	(void)!buf_add_str(&b, text);
	add_notes(call, session, asked, &b, structured);
	tool_finish(call, b.data, structured, NULL, false);
}

struct census {
	json_t *list;
	struct buf text;
	json_int_t total, running, stopped;
};

static void add_sandbox(struct census *c, const struct session *session)
{
	const char *status = tool_sandbox_status(session);
	json_t *j = tool_view_sandbox(session);

	c->total++;
	c->running += str_equal(status, "running") || str_equal(status, "creating");
	c->stopped += str_equal(status, "stopped") || str_equal(status, "error");
	(void)!buf_addf(&c->text, "%s %s, created %s\n",
	                json_string_value(json_object_get(j, "id")), status,
	                json_string_value(json_object_get(j, "created_at")));
	(void)!json_array_append_new(c->list, j);
}

void tool_list_sandboxes(struct call *call)
{
	struct census c = {.list = json_array(), .text = BUF_INIT(TEXT_MAX)};
	json_t *structured = json_object();
	const struct session *session =
		session_at(call->router->parts.sessions, call->principal->tenant, 0);

	for (; session; session = session_older(session)) {
		struct session_info info = {0};

		session_info(session, &info);
		if (info.state != SESSION_TERMINATED)
			add_sandbox(&c, session);
	}
	json_set(structured, "sandboxes", c.list);
	json_set(structured, "total_count", json_integer(c.total));
	json_set(structured, "running_count", json_integer(c.running));
	json_set(structured, "stopped_count", json_integer(c.stopped));
	tool_finish(call,
	            c.total       ? c.text.data
	            : call->brief ? "No sessions."
	                          : "No sandboxes.",
	            structured, NULL, false);
	buf_done(&c.text);
}

static void terminate_session(struct call *call, struct session *session)
{
	const char *id = call->args.sandbox_id;
	cleanup_free char *text =
		xasprintf("%s %s is terminated.", call->brief ? "Session" : "Sandbox", id);
	json_t *structured = json_object();

	session_terminate(session, "terminated by its owner");
	json_set(structured, "sandbox_id", json_string(id));
	json_set(structured, "status", json_string("terminated"));
	tool_finish(call, text, structured, NULL, false);
}

void tool_terminate_sandbox(struct call *call)
{
	tool_with_session(call, terminate_session);
}

static void interrupt_session(struct call *call, struct session *session)
{
	const char *id = call->args.sandbox_id;
	struct error err = {0};
	json_t *structured;

	if (session_interrupt(session, &err) < 0) {
		tool_refuse(call, &err);
		return;
	}
	structured = json_object();
	json_set(structured, "sandbox_id", json_string(id));
	json_set(structured, "status", json_string("interrupted"));
	tool_finish(call, "Interrupted the program, like Ctrl-C; files and variables persist.",
	            structured, NULL, false);
}

void tool_interrupt(struct call *call)
{
	tool_with_session(call, interrupt_session);
}

/* The id that create is to use. */
static int take_own_id(struct call *call, struct error *err)
{
	char *id = TAKE_PTR(call->args.sandbox_id);

	if (id && !decode_is_id(id)) {
		free(id);
		return error_field(err, "session_id", "must be " ID_TEXT);
	}
	call->args.session.id = id;
	return 0;
}

void tool_manage_session(struct call *call)
{
	static const struct {
		tool_fn *run;
		enum scope scope;
		const char *tool; /* does the same: an operator may have disabled it */
	} actions[] = {
		[TOOL_CREATE] = {tool_create_sandbox, SCOPE_SESSIONS, "create_sandbox"},
		[TOOL_LIST] = {tool_list_sandboxes, SCOPE_READ, "list_sandboxes"},
		[TOOL_INTERRUPT] = {tool_interrupt, SCOPE_SESSIONS, "interrupt"},
		[TOOL_END] = {tool_terminate_sandbox, SCOPE_SESSIONS, "terminate_sandbox"},
	};
	enum tool_action action = call->args.action;
	struct error err = {0};

	static_assert(ARRAY_SIZE(actions) == TOOL_ACTION_COUNT, "every action has its function");
	if (!scope_allows(call->principal->scopes, actions[action].scope))
		(void)error_set(&err, ERR_NO_SCOPE, 0, "this needs scope %s",
		                scope_name(actions[action].scope));
	else if (str_list_has(call->router->config->mcp_disabled_tools, actions[action].tool))
		(void)error_set(&err, ERR_DENIED, 0, "%s is disabled here", actions[action].tool);
	else if (action == TOOL_CREATE)
		(void)!take_own_id(call, &err);
	else if (action != TOOL_LIST && (!call->args.sandbox_id || !*call->args.sandbox_id))
		(void)error_field(&err, "session_id", "is missing");
	if (error_is_set(&err))
		tool_refuse(call, &err);
	else
		actions[action].run(call);
}
