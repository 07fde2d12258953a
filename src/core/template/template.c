/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/language/env.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/template/images.h"

#define AT(field) offsetof(struct template_spec, field)

const struct template_field template_fields[] = {
	{"id", AT(id), TEMPLATE_TEXT},
	{"name", AT(name), TEMPLATE_TEXT},
	{"description", AT(description), TEMPLATE_TEXT},
	{"image", AT(image), TEMPLATE_TEXT},
	{"base_image", AT(base_image), TEMPLATE_TEXT},
	{"runtime_type", AT(runtime_type), TEMPLATE_TEXT},
	{"language", AT(language), TEMPLATE_TEXT},
	{"engine", AT(engine), TEMPLATE_TEXT},
	{"min_isolation", AT(min_isolation), TEMPLATE_TEXT},
	{"security_context", AT(security_context), TEMPLATE_TEXT},
	{"packages", AT(packages), TEMPLATE_LIST},
	{"preload", AT(preload), TEMPLATE_LIST},
	{"env", AT(env), TEMPLATE_LIST},
	{"memory_bytes", AT(memory_bytes), TEMPLATE_NUMBER},
	{"disk_bytes", AT(disk_bytes), TEMPLATE_NUMBER},
	{"cpu_millicores", AT(cpu_millicores), TEMPLATE_NUMBER},
	{"max_processes", AT(max_processes), TEMPLATE_NUMBER},
	{"timeout_us", AT(timeout_us), TEMPLATE_NUMBER},
	{"manager", AT(manager), TEMPLATE_TEXT},
	{"lock", AT(lock), TEMPLATE_TEXT},
	{"run", AT(run), TEMPLATE_TEXT},
	{"layer", AT(layer), TEMPLATE_TEXT},
	{"layer_bytes", AT(layer_bytes), TEMPLATE_NUMBER},
	{"system_packages", AT(system_packages), TEMPLATE_NUMBER},
};

void template_spec_done(struct template_spec *spec)
{
	for (size_t i = 0; i < TEMPLATE_FIELDS; i++) {
		void *place = template_field_of(spec, &template_fields[i]);

		if (template_fields[i].kind == TEMPLATE_TEXT)
			free(*(char **)place);
		else if (template_fields[i].kind == TEMPLATE_LIST)
			str_list_free(*(char ***)place);
	}
	*spec = (struct template_spec){0};
}

void template_spec_fill(struct template_spec *spec, const struct template_spec *from)
{
	for (size_t i = 0; i < TEMPLATE_FIELDS; i++) {
		void *to = template_field_of(spec, &template_fields[i]);
		const void *value = template_field_of(from, &template_fields[i]);

		if (template_fields[i].kind == TEMPLATE_NUMBER) {
			if (*(uint64_t *)to == 0)
				*(uint64_t *)to = *(const uint64_t *)value;
		} else if (!*(void **)to && *(void *const *)value) {
			if (template_fields[i].kind == TEMPLATE_TEXT)
				*(char **)to = xstrdup(*(char *const *)value);
			else
				*(char ***)to = str_list_copy(*(char **const *)value);
		}
	}
}

struct template *template_ref(struct template *t)
{
	if (t)
		t->refs++;
	return t;
}

void template_unref(struct template *t)
{
	if (!t)
		return;
	assert(t->refs > 0);
	if (--t->refs > 0)
		return;
	template_spec_done(&t->spec);
	str_list_free(t->programs);
	free(t->problem);
	free(t->config);
	image_unref(t->image);
	image_unref(t->packages);
	free(t);
}

const char *template_kind_name(enum template_kind kind)
{
	static const char *const names[TEMPLATE_KIND_COUNT] = {
		[TEMPLATE_ON_HOST] = "host",
		[TEMPLATE_ON_DIRECTORY] = "directory",
		[TEMPLATE_ON_IMAGE] = "image",
		[TEMPLATE_ON_NOTHING] = "missing",
	};

	return names[kind];
}

struct template template_root_alone(const struct template *t)
{
	struct template root = {.kind = t->kind, .image = t->image, .programs = t->programs};

	root.spec.id = t->spec.id;
	memcpy(root.tenant, t->tenant, sizeof(root.tenant));
	memcpy(root.root, t->root, sizeof(root.root));
	return root;
}

const char *template_program(const struct template *t, const char *path)
{
	if (!template_has_own_root(t))
		return path;
	for (char **pair = t->programs; *pair; pair += 2)
		if (str_equal(pair[0], path))
			return pair[1];
	return NULL;
}

static bool can_run(const struct template *t, char *const *command)
{
	/* Other words are arguments. */
	return command && (**command != '/' || template_program(t, *command));
}

char *const *template_command(const struct template *t, const struct runner *r)
{
	/* A compiled program needs none to run, but its compiler. */
	if (!template_has_own_root(t) ||
	    (can_run(t, r->command) && (!r->compile_command || template_program(t, r->program))))
		return r->command;
	return can_run(t, r->minimal_command) ? r->minimal_command : NULL;
}

char *const *template_session_command(const struct template *t, const struct runner *r)
{
	const char *program;

	if (!template_has_own_root(t))
		return r->session_command;
	program = template_program(t, r->program);
	if (!program || !can_run(t, r->session_command))
		return NULL;
	if (str_equal(program, r->program))
		return r->session_command;
	/* Else a script names the program, by that path. */
	return str_list_has(r->session_command, r->program) ? r->session_command : NULL;
}

char *const *template_prepare_command(const struct template *t, const struct runner *r)
{
	/* The process must run the program's own command. */
	if (!r->prepare_command || template_command(t, r) != (char *const *)r->command)
		return NULL;
	return !template_has_own_root(t) || can_run(t, r->prepare_command) ? r->prepare_command
	                                                                   : NULL;
}

bool template_hides_host(const struct template *t, const struct manager *m)
{
	return m->alone && (!t || (!t->root[0] && t->spec.system_packages != TEMPLATE_YES));
}

static bool has_variable(char *const *env, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (; env && *env; env++)
		if (strncmp(*env, variable, len) == 0)
			return true;
	return false;
}

char **template_runner_env(const struct template *t, const struct runner *r)
{
	const struct manager *m =
		t && t->packages && t->spec.manager ? manager_find(t->spec.manager) : NULL;
	size_t own = str_list_count(r->env), more = 0;
	char **env;

	while (m && more < ARRAY_SIZE(m->env) && m->env[more])
		more++;
	env = xcalloc(own + more + 2, sizeof(*env));
	for (size_t i = 0; i < own; i++)
		env[i] = xstrdup(r->env[i]);
	for (size_t i = 0; i < more; i++)
		env[own + i] = xstrdup(m->env[i]);
	if (m && template_hides_host(t, m))
		env[own + more] = xstrdup(m->alone);
	return env;
}

bool template_env_is_good(const char *variable)
{
	char *env[] = {(char *)(uintptr_t)variable, NULL};
	struct error err = {0};

	return env_check(env, &err) == 0;
}

char **template_env(const struct template *t, char *const *own)
{
	char *const *base = t ? t->spec.env : NULL;
	size_t first = base ? str_list_count(base) : 0;
	size_t second = own ? str_list_count(own) : 0;
	size_t n = 0;
	char **env;

	if (first + second == 0)
		return NULL;
	env = xcalloc(first + second + 1, sizeof(*env));
	for (size_t i = 0; i < first; i++)
		if (!has_variable(own, base[i]))
			env[n++] = xstrdup(base[i]);
	for (size_t i = 0; i < second; i++)
		env[n++] = xstrdup(own[i]);
	return env;
}
