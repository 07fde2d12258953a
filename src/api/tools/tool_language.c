/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/encode_language.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/run/run_service.h"
#include "core/run/versions.h"
#include "core/template/template.h"
#include "core/template/templates.h"

#define TEXT_MAX 16384

/* Languages that agents ask for. */
static const struct {
	const char *name, *title;
} known[] = {
	{"python", "Python"},
	{"javascript", "JavaScript"},
	{"typescript", "TypeScript"},
	{"shell", "Shell"},
	{"go", "Go"},
	{"rust", "Rust"},
	{"java", "Java"},
	{"c", "C"},
	{"cpp", "C++"},
	{"csharp", "C#"},
};

/* A language without a runner. */
static json_t *view_absent(const char *name, const char *title)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(name));
	json_set(j, "title", json_string(title));
	json_set(j, "aliases", json_array());
	json_set(j, "available", json_false());
	json_set(j, "version", json_null());
	json_set(j, "keeps_state", json_false());
	json_set(j, "missing", json_string("a runner for it"));
	return j;
}

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
static int find_template(const struct call *call, const struct template **ret_template,
                         struct error *err)
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

		(void)!buf_addf(to, "%s (%s)%s%s%s%s%s%s\n", text_of(j, "name"),
		                text_of(j, "title"), version ? " " : "", version ? version : "",
		                missing ? ": not available, lacks " : "", missing ? missing : "",
		                install ? "; " : "", install ? install : "");
	}
}

static void answer(struct call *call)
{
	const struct runners *all = call->router->parts.runners;
	const struct versions *versions = run_service_versions(call->router->runs);
	json_t *list = json_array(), *names = json_array(), *structured = json_object();
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	const struct template *t;
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
		add_language(
			list, names,
			encode_language(r, t, t && t->programs ? NULL : versions_of(versions, r)));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!runners_find(all, known[i].name))
			add_language(list, names, view_absent(known[i].name, known[i].title));
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
	versions_cancel(work);
}

void tool_list_languages(struct call *call)
{
	struct versions_wait *wait =
		versions_want(run_service_versions(call->router->runs), on_known, call);

	if (wait)
		call_wait(call, wait, stop_waiting);
	else
		answer(call);
}
