/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/encode_language.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/run/language_check.h"
#include "core/run/run_service.h"
#include "core/template/template.h"
#include "core/template/templates.h"

#define TEXT_MAX 16384

static void add_language(json_t *list, json_t *names, json_t *j)
{
	if (json_is_true(json_object_get(j, "available")))
		(void)!json_array_append(names, json_object_get(j, "name"));
	(void)!json_array_append_new(list, j);
}

static const char *text_of(const json_t *j, const char *key)
{
	return json_string_value(json_object_get(j, key));
}

/* NULL: the host. */
static int find_template(const struct call *call, struct template **ret_template, struct error *err)
{
	const struct router *r = call->router;
	const char *tenant = call->principal->tenant, *id;

	*ret_template = NULL;
	if (!call->args.image)
		return 0;
	if (tool_find_image(r, tenant, call->args.image, &id, err) < 0) {
		(void)!str_copy(err->field, sizeof(err->field), "template"); /* short literal */
		return -1;
	}
	*ret_template = r->parts.templates ? templates_find(r->parts.templates, tenant, id) : NULL;
	return 0;
}

/* A line for each of @list. */
static void add_lines(const json_t *list, struct buf *to)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *j = json_array_get(list, i);
		const char *missing = text_of(j, "missing"), *version = text_of(j, "version");
		const char *install = text_of(j, "install");
		bool ran = json_is_true(json_object_get(j, "checked"));

		(void)!buf_addf(to, "%s (%s)%s%s%s%s%s%s\n", text_of(j, "name"),
		                text_of(j, "title"), version ? " " : "", version ? version : "",
		                !missing ? ""
		                : ran    ? ": not available, it says: "
		                         : ": not available, lacks ",
		                missing ? missing : "", install ? "; " : "",
		                install ? install : "");
	}
}

static void answer(struct call *call)
{
	const struct runners *all = call->router->parts.runners;
	const struct toolchains *toolchains = run_service_toolchains(call->router->runs);
	json_t *list = json_array(), *names = json_array(), *structured = json_object();
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	struct template *t;
	struct error err = {0};
	const struct runner *r;

	/* It may be gone since the call. */
	if (find_template(call, &t, &err) < 0) {
		json_decref(list);
		json_decref(names);
		json_decref(structured);
		tool_refuse(call, &err);
		return;
	}
	for (size_t i = 0; (r = runners_at(all, i)); i++)
		add_language(list, names, encode_language(toolchains, t, r));
	add_lines(list, &text);
	json_set(structured, "languages", names);
	json_set(structured, "details", list);
	tool_finish(call, text.data ? text.data : "", structured, NULL, false);
}

static void on_known(void *ctx)
{
	struct call *call = ctx;

	call->work = NULL;
	answer(call);
}

static void stop_waiting(void *work)
{
	language_wait_cancel(work);
}

void tool_list_languages(struct call *call)
{
	struct language_query query = {.within_us = LANGUAGE_LIST_US};
	struct language_wait *wait;
	struct error err = {0};

	if (find_template(call, &query.template, &err) < 0) {
		tool_refuse(call, &err);
		return;
	}
	wait = language_checks_want(run_service_language_checks(call->router->runs), &query,
	                            on_known, call);
	if (wait)
		call_wait(call, wait, stop_waiting);
	else
		answer(call);
}
