/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode_language.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "core/language/runners.h"
#include "core/template/template.h"
#include "core/template/toolchains.h"
#include <string.h>

static json_t *encode_words(char *const *words)
{
	json_t *j = json_array();

	for (; words && *words; words++)
		json_append(j, json_string(*words));
	return j;
}

static json_t *encode_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *encode_option(const struct runner_option *option)
{
	json_t *j = json_object();

	json_set(j, "name", json_string(option->name));
	json_set(j, "type", json_string(runner_option_type_name(option->type)));
	json_set(j, "description", encode_or_null(option->description));
	json_set(j, "values", option->values ? encode_words(option->values) : json_null());
	json_set(j, "default", encode_or_null(option->fallback));
	return j;
}

static json_t *encode_options(const struct runner *r)
{
	json_t *j = json_array();

	for (size_t i = 0; i < r->options_count; i++)
		json_append(j, encode_option(&r->options[i]));
	return j;
}

json_t *encode_language(const struct toolchains *all, const struct template *t,
                        const struct runner *r)
{
	cleanup_free char *install = runner_install_command(r);
	struct toolchain_view view;
	json_t *j = json_object();
	bool keeps;

	toolchains_view(all, t, r, &view);
	keeps = view.is_there && template_session_command(t, r) != NULL;

	json_set(j, "name", json_string(r->name));
	json_set(j, "title", json_string(r->title));
	json_set(j, "aliases", encode_words(r->aliases));
	json_set(j, "extensions", encode_words(r->extensions));
	json_set(j, "available", json_boolean(view.is_there));
	json_set(j, "checked", json_boolean(view.is_checked));
	json_set(j, "version", encode_or_null(view.is_there ? view.version : NULL));
	json_set(j, "keeps_state", json_boolean(keeps));
	json_set(j, "compiled", json_boolean(r->compile_command && !r->compile_if));
	json_set(j, "package_manager", encode_or_null(r->package_manager));
	json_set(j, "options", encode_options(r));
	json_set(j, "missing",
	         view.missing ? json_text(view.missing, strlen(view.missing)) : json_null());
	json_set(j, "install", encode_or_null(view.is_there ? NULL : install));
	json_set(j, "debian_packages", encode_words(r->debian));
	return j;
}
