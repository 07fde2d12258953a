/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/language/env.h"
#include "core/language/runners.h"
#include "core/template/images.h"

#define AT(field) offsetof(struct template_spec, field)

static const size_t texts[] = {
	AT(id),         AT(name),         AT(description), AT(image),
	AT(base_image), AT(runtime_type), AT(language),    AT(security_context)};
static const size_t lists[] = {AT(packages), AT(preload), AT(env)};
static const size_t numbers[] = {AT(memory_bytes), AT(disk_bytes), AT(cpu_millicores),
                                 AT(max_processes), AT(timeout_us)};

static void *spec_field(const struct template_spec *spec, size_t offset)
{
	return (char *)(uintptr_t)spec + offset;
}

void template_spec_done(struct template_spec *spec)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(*(char **)spec_field(spec, texts[i]));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		str_list_free(*(char ***)spec_field(spec, lists[i]));
	*spec = (struct template_spec){0};
}

void template_spec_fill(struct template_spec *spec, const struct template_spec *from)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char **to = spec_field(spec, texts[i]);
		char *const *value = spec_field(from, texts[i]);

		if (!*to && *value)
			*to = xstrdup(*value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		char ***to = spec_field(spec, lists[i]);
		char **const *value = spec_field(from, lists[i]);

		if (!*to && *value)
			*to = str_list_copy(*value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint64_t *to = spec_field(spec, numbers[i]);
		const uint64_t *value = spec_field(from, numbers[i]);

		if (*to == 0)
			*to = *value;
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

static bool is_on_host(const struct template *t)
{
	return !t || !t->programs;
}

const char *template_program(const struct template *t, const char *path)
{
	if (is_on_host(t))
		return path;
	for (char **pair = t->programs; *pair; pair += 2)
		if (str_equal(pair[0], path))
			return pair[1];
	return NULL;
}

static bool can_run(const struct template *t, char *const *command)
{
	for (; command && *command; command++)
		if (**command == '/' && !template_program(t, *command))
			return false;
	return command != NULL;
}

char *const *template_command(const struct template *t, const struct runner *r)
{
	if (is_on_host(t) || can_run(t, r->command))
		return r->command;
	return can_run(t, r->minimal_command) ? r->minimal_command : NULL;
}

static bool has_word(char *const *command, const char *word)
{
	for (; *command; command++)
		if (str_equal(*command, word))
			return true;
	return false;
}

char *const *template_session_command(const struct template *t, const struct runner *r)
{
	const char *program;

	if (is_on_host(t))
		return r->session_command;
	program = template_program(t, r->program);
	if (!program || !can_run(t, r->session_command))
		return NULL;
	/* If the command does not name the program its script does, by the same path. */
	return has_word(r->session_command, r->program) || str_equal(program, r->program)
	               ? r->session_command
	               : NULL;
}

char *const *template_prepare_command(const struct template *t, const struct runner *r)
{
	/* Only for a process that would run the program's own command. */
	if (!r->prepare_command || template_command(t, r) != (char *const *)r->command)
		return NULL;
	return is_on_host(t) || can_run(t, r->prepare_command) ? r->prepare_command : NULL;
}

static bool is_named(char *const *env, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (; env && *env; env++)
		if (strncmp(*env, variable, len) == 0)
			return true;
	return false;
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
		if (!is_named(own, base[i]))
			env[n++] = xstrdup(base[i]);
	for (size_t i = 0; i < second; i++)
		env[n++] = xstrdup(own[i]);
	return env;
}
