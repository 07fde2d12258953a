/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/tool_internal.h"

#include "api/internal.h"
#include "api/json/json.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/language/runners.h"

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

static json_t *view_runner(const struct runner *r)
{
	json_t *j = json_object(), *aliases = json_array();

	for (char *const *alias = r->aliases; alias && *alias; alias++)
		(void)!json_array_append_new(aliases, json_string(*alias));
	json_set(j, "name", json_string(r->name));
	json_set(j, "title", json_string(r->title));
	json_set(j, "aliases", aliases);
	json_set(j, "available", json_boolean(r->installed));
	json_set(j, "keeps_state", json_boolean(r->session_command != NULL));
	json_set(j, "missing", r->installed ? json_null() : json_string(r->program));
	return j;
}

/* A language without a runner. */
static json_t *view_absent(const char *name, const char *title)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(name));
	json_set(j, "title", json_string(title));
	json_set(j, "aliases", json_array());
	json_set(j, "available", json_false());
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

void tool_list_languages(struct call *call)
{
	const struct runners *all = call->router->parts.runners;
	json_t *list = json_array(), *names = json_array(), *structured = json_object();
	cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
	const struct runner *r;

	for (size_t i = 0; (r = runners_at(all, i)); i++)
		add_language(list, names, view_runner(r));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!runners_find(all, known[i].name))
			add_language(list, names, view_absent(known[i].name, known[i].title));
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *j = json_array_get(list, i);
		const char *missing = json_string_value(json_object_get(j, "missing"));

		(void)!buf_addf(&text, "%s (%s)%s%s\n",
		                json_string_value(json_object_get(j, "name")),
		                json_string_value(json_object_get(j, "title")),
		                missing ? ": not available, lacks " : "", missing ? missing : "");
	}
	json_set(structured, "languages", names);
	json_set(structured, "details", list);
	tool_finish(call, text.data ? text.data : "", structured, NULL, false);
}
