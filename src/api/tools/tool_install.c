/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/dependencies.h"
#include "api/json/json.h"
#include "api/op/install.h"
#include "api/op/session_install.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/install/install.h"
#include "core/language/runners.h"
#include "core/session/session.h"
#include "core/template/templates.h"
#include <string.h>

/* Packages for a sandbox that lives: see op/session_install.h. What was installed is noted with the
 * session, so that a later call finds it. */

struct tool_install {
	struct call *call;
	struct op_session_install *op;
	void (*then)(struct call *call);
	struct text_stream text;
};

static void cancel_install(void *work)
{
	cleanup_free struct tool_install *i = work;

	op_session_install_cancel(i->op);
}

static void on_output(void *ctx, const char *data, size_t len)
{
	struct tool_install *i = ctx;
	cleanup_free char *text = NULL;

	if (!i->call->events.on_output)
		return;
	text = text_stream_feed(&i->text, data, len, &len);
	if (len > 0)
		i->call->events.on_output(i->call->events.ctx, OUTPUT_STDERR, text, len);
}

static void note_installed(const struct call *call, const char *lock, const char *folder)
{
	struct session *session = session_find(call->router->parts.sessions,
	                                       call->principal->tenant, call->args.sandbox_id);
	cleanup_json json_t *wanted = dependencies_of(call->args.packages);
	struct session_info info = {0};
	cleanup_free char *text = NULL;

	if (!session)
		return;
	session_info(session, &info);
	text = dependencies_add(info.dependencies, dependencies_installed(wanted, lock, folder));
	session_set_dependencies(session, text);
}

static void on_done(void *ctx, const char *lock, const char *folder)
{
	cleanup_free struct tool_install *i = ctx;
	struct call *call = i->call;

	call->work = NULL;
	call->cancel = NULL;
	note_installed(call, lock, folder);
	i->then(call);
}

static void on_failed(void *ctx, const struct error *err, const char *log attr_unused)
{
	cleanup_free struct tool_install *i = ctx;
	struct call *call = i->call;
	struct error copy = *err;

	call->work = NULL;
	call->cancel = NULL;
	(void)!str_copy(copy.field, sizeof(copy.field), "packages");
	tool_refuse(call, &copy);
}

void tool_install(struct call *call, const char *language, void (*then)(struct call *call))
{
	struct tool_install *i = NEW(struct tool_install);
	const struct op_session_packages wanted = {.who = call->principal,
	                                           .request_id = call->request_id,
	                                           .session_id = call->args.sandbox_id,
	                                           .language = language,
	                                           .packages = call->args.packages};
	const struct op_session_install_events events = {i, on_output, on_done, on_failed};
	struct error err = {0};

	*i = (struct tool_install){.call = call, .then = then};
	if (op_session_install(call->router, &wanted, &events, &i->op, &err) < 0) {
		free(i);
		tool_refuse(call, &err);
		return;
	}
	call_wait(call, i, cancel_install);
}

bool tool_lacks_packages(const struct call *call, const struct session *session,
                         const char *language)
{
	const struct template *t = session_template(session);
	struct session_info info = {0};

	session_info(session, &info);
	for (char **package = call->args.packages; package && *package; package++) {
		char *const one[] = {*package, NULL};

		if (op_box_lacks(call->router, language, t, one) < 0 ||
		    (t && t->packages && t->spec.packages &&
		     str_list_has(t->spec.packages, *package)) ||
		    dependencies_have(info.dependencies, *package))
			continue;
		return true;
	}
	return false;
}

static void finish_install(struct call *call)
{
	json_t *structured = json_object(), *names = json_array();
	cleanup_buf struct buf text = BUF_INIT(64u * 1024);

	(void)!buf_add_str(&text, "Installed:");
	for (char **package = call->args.packages; *package; package++) {
		json_append(names, json_string(*package));
		(void)!buf_addf(&text, " %s", *package);
	}
	(void)!buf_add(&text, "", 1);
	json_set(structured, "packages_installed", names);
	tool_finish(call, text.data, structured, NULL, false);
}

static void start_install(struct call *call, struct session *session)
{
	const char *language = call->args.exec.request.language;
	const struct runner *r;
	struct session_info info = {0};
	struct error err = {0};

	session_info(session, &info);
	r = runners_find(call->router->parts.runners, language ? language : info.language);
	if (info.state == SESSION_PAUSED)
		(void)error_set(&err, ERR_CONFLICT, 0, "sandbox %s is stopped: start it first",
		                info.id);
	else if (!r)
		(void)error_field(&err, "language", "'%.32s' is not supported", language);
	else if (!call->args.packages || !call->args.packages[0])
		(void)error_field(&err, "packages", "is empty");
	if (error_is_set(&err) || !r)
		tool_refuse(call, &err);
	else if (!tool_lacks_packages(call, session, r->name))
		finish_install(call);
	else
		tool_install(call, r->name, finish_install);
}

void tool_install_package(struct call *call)
{
	tool_with_session(call, start_install);
}
