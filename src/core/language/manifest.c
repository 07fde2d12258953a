/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/manifest.h"

#include <string.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/config/yamldoc.h"

/*
 * Theory of operation. A table has a row for each key: where the value goes and which function
 * reads it. Mappings (limits, options) have tables of their own, read by the same functions.
 */

#define NAME_LEN    64
#define PERCENT_MAX 10000

/* The manifest being parsed, for error messages. */
struct reading {
	const char *path;
	const struct yamldoc_node *node;
	struct error *err;
};

struct field {
	const char *key;
	size_t offset;
	int (*read)(const struct reading *in, void *field);
	bool required;
};

static int reject_field(const struct reading *in, const char *why)
{
	return error_set(in->err, ERR_CONFIG, 0, "%s:%u: '%s' %s", in->path, in->node->line,
	                 in->node->key ? in->node->key : "", why);
}

/* Names appear in paths, error messages and metrics: allow nothing with a special meaning. */
static bool is_name(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len < NAME_LEN && s[0] != '.' && s[0] != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.+#_-") == len;
}

static int read_text(const struct reading *in, void *field)
{
	if (in->node->kind != YAMLDOC_SCALAR || (!*in->node->value && !in->node->quoted))
		return reject_field(in, "must be a value");
	*(char **)field = xstrdup(in->node->value);
	return 0;
}

static int read_words(const struct reading *in, void *field)
{
	cleanup_str_list char **list = xcalloc(in->node->count + 1, sizeof(*list));
	size_t count = 0;

	if (in->node->kind != YAMLDOC_LIST)
		return reject_field(in, "must be a list");
	for (const struct yamldoc_node *n = in->node->first; n; n = n->next) {
		if (n->kind != YAMLDOC_SCALAR)
			return reject_field(in, "must be a list of values");
		list[count++] = xstrdup(n->value);
	}
	*(char ***)field = TAKE_PTR(list);
	return 0;
}

static int read_name(const struct reading *in, void *field)
{
	if (read_text(in, field) < 0)
		return -1;
	return is_name(*(char **)field) ? 0 : reject_field(in, "must be a short lower-case name");
}

static int read_names(const struct reading *in, void *field)
{
	if (read_words(in, field) < 0)
		return -1;
	for (char **name = *(char ***)field; *name; name++)
		if (!is_name(*name))
			return reject_field(in, "must be short lower-case names");
	return 0;
}

/* Words of a command that an operator runs as root. */
static int read_packages(const struct reading *in, void *field)
{
	if (read_words(in, field) < 0)
		return -1;
	for (char **name = *(char ***)field; *name; name++) {
		size_t len = strlen(*name);

		if (len < 2 || len >= NAME_LEN || strchr("+-.", **name) ||
		    (*name)[len - 1] == '-' ||
		    strspn(*name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != len)
			return reject_field(in, "must be names of Debian's packages");
	}
	return **(char ***)field ? 0 : reject_field(in, "must name a package");
}

static int read_source(const struct reading *in, void *field)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	const char *name = in->node->value;

	if (read_text(in, field) < 0)
		return -1;
	if (!*name || strlen(name) >= NAME_LEN || *name == '.' || name[strspn(name, letters)])
		return reject_field(in, "must be a plain file name");
	return 0;
}

static int read_program(const struct reading *in, void *field)
{
	if (read_text(in, field) < 0)
		return -1;
	return **(char **)field == '/' ? 0 : reject_field(in, "must be an absolute path");
}

/* argv[0] is executed without a search: PATH does not choose what runs. */
static int read_command(const struct reading *in, void *field)
{
	const char *first;

	if (read_words(in, field) < 0)
		return -1;
	first = **(char ***)field;
	if (!first || (*first != '/' && !str_has_prefix(first, "{runner}/") &&
	               !str_equal(first, "{artifact}")))
		return reject_field(in,
		                    "must begin with an absolute path, {runner}/ or {artifact}");
	return 0;
}

static int read_paths(const struct reading *in, void *field)
{
	if (read_words(in, field) < 0)
		return -1;
	for (char **place = *(char ***)field; *place; place++)
		if (**place != '/')
			return reject_field(in, "must be absolute paths");
	return 0;
}

static int read_env(const struct reading *in, void *field)
{
	cleanup_str_list char **list = xcalloc(in->node->count + 1, sizeof(*list));
	size_t count = 0;

	if (in->node->kind != YAMLDOC_MAPPING)
		return reject_field(in, "must be a mapping of names to values");
	for (const struct yamldoc_node *n = in->node->first; n; n = n->next) {
		if (n->kind != YAMLDOC_SCALAR || strchr(n->key, '-'))
			return reject_field(in, "must be a mapping of variable names to values");
		list[count++] = xasprintf("%s=%s", n->key, n->value);
	}
	*(char ***)field = TAKE_PTR(list);
	return 0;
}

static int read_bool(const struct reading *in, void *field)
{
	cleanup_free char *text = NULL;

	if (read_text(in, &text) < 0)
		return -1;
	if (!str_equal(text, "true") && !str_equal(text, "false"))
		return reject_field(in, "must be true or false");
	*(bool *)field = str_equal(text, "true");
	return 0;
}

static int read_size(const struct reading *in, void *field)
{
	if (in->node->kind != YAMLDOC_SCALAR || parse_size(in->node->value, field) < 0)
		return reject_field(in, "must be a size like 64Mi");
	return 0;
}

static int read_duration(const struct reading *in, void *field)
{
	if (in->node->kind != YAMLDOC_SCALAR || parse_duration(in->node->value, field) < 0)
		return reject_field(in, "must be a duration like 30s");
	return 0;
}

static int read_number(const struct reading *in, void *field)
{
	if (in->node->kind != YAMLDOC_SCALAR || parse_u64(in->node->value, field) < 0)
		return reject_field(in, "must be a number");
	return 0;
}

/* "1.5": like cores, in thousandths. */
static int read_factor(const struct reading *in, void *field)
{
	uint64_t thousandths;

	if (in->node->kind != YAMLDOC_SCALAR || parse_cpu(in->node->value, &thousandths) < 0 ||
	    thousandths < 1000 || thousandths > PERCENT_MAX)
		return reject_field(in, "must be a number from 1 to 10");
	*(unsigned *)field = (unsigned)(thousandths / 10);
	return 0;
}

static int read_hints(const struct reading *in, void *field)
{
	struct runner *r =
		(struct runner *)(void *)((char *)field - offsetof(struct runner, hints));

	if (in->node->kind != YAMLDOC_LIST)
		return reject_field(in, "must be a list");
	r->hints = xcalloc(in->node->count + 1, sizeof(*r->hints));
	for (const struct yamldoc_node *n = in->node->first; n; n = n->next) {
		if (n->kind != YAMLDOC_SCALAR)
			return reject_field(in, "must be a list of values");
		if (hint_parse(n->value, &r->hints[r->hints_count++]) < 0)
			return reject_field(in,
			                    "must be a list of 'WEIGHT TEXT' or 'WEIGHT ^TEXT'");
	}
	return 0;
}

static int read_fields(const struct reading *in, const struct field *fields, void *object)
{
	if (in->node->kind != YAMLDOC_MAPPING)
		return reject_field(in, "must be a mapping");
	for (const struct yamldoc_node *n = in->node->first; n; n = n->next) {
		const struct reading one = {.path = in->path, .node = n, .err = in->err};
		const struct field *f = fields;

		while (f->key && !str_equal(f->key, n->key))
			f++;
		if (!f->key)
			return reject_field(&one, "is not a key of a manifest");
		if (f->read(&one, (char *)object + f->offset) < 0)
			return -1;
	}
	return 0;
}

static int check_required(const struct reading *in, const struct field *fields)
{
	for (const struct field *f = fields; f->key; f++) {
		const struct yamldoc_node *n = in->node->first;

		while (n && !str_equal(n->key, f->key))
			n = n->next;
		if (!n && f->required)
			return error_set(in->err, ERR_CONFIG, 0, "%s: '%s' is missing", in->path,
			                 f->key);
	}
	return 0;
}

#define AT(field) offsetof(struct runner_limits, field)
static const struct field limit_fields[] = {
	{"timeout", AT(timeout_us), read_duration, false},
	{"memory", AT(memory_bytes), read_size, false},
	{"disk", AT(disk_bytes), read_size, false},
	{"max_processes", AT(max_processes), read_number, false},
	{0},
};
#undef AT

static int read_limits(const struct reading *in, void *field)
{
	return read_fields(in, limit_fields, field);
}

static const char *const type_names[] = {
	[RUNNER_OPTION_TEXT] = "text",
	[RUNNER_OPTION_WORDS] = "words",
	[RUNNER_OPTION_BOOL] = "bool",
	[RUNNER_OPTION_LANGUAGE] = "language",
	[RUNNER_OPTION_PROGRAM] = "program",
	[RUNNER_OPTION_VERSION] = "version",
	[RUNNER_OPTION_LANGUAGE_VERSION] = "language_version",
};
static_assert(ARRAY_SIZE(type_names) == RUNNER_OPTION_TYPE_COUNT, "every type has a name");

const char *runner_option_type_name(enum runner_option_type type)
{
	return type_names[type];
}

static int read_type(const struct reading *in, void *field)
{
	for (size_t i = 0; in->node->kind == YAMLDOC_SCALAR && i < ARRAY_SIZE(type_names); i++)
		if (str_equal(in->node->value, type_names[i])) {
			*(enum runner_option_type *)field = (enum runner_option_type)i;
			return 0;
		}
	return reject_field(
		in, "must be text, words, bool, language, program, version or language_version");
}

#define AT(field) offsetof(struct runner_option, field)
static const struct field option_fields[] = {
	{"description", AT(description), read_text, false},
	{"type", AT(type), read_type, false},
	{"values", AT(values), read_words, false},
	{"default", AT(fallback), read_text, false},
	{"compile", AT(compile), read_words, false},
	{"run", AT(run), read_words, false},
	{"before", AT(before), read_text, false},
	{0},
};
#undef AT

static int read_options(const struct reading *in, void *field)
{
	struct runner *r =
		(struct runner *)(void *)((char *)field - offsetof(struct runner, options));

	if (in->node->kind != YAMLDOC_MAPPING)
		return reject_field(in, "must be a mapping of names to options");
	r->options = xcalloc(in->node->count + 1, sizeof(*r->options));
	for (const struct yamldoc_node *n = in->node->first; n; n = n->next) {
		const struct reading one = {.path = in->path, .node = n, .err = in->err};
		struct runner_option *option = &r->options[r->options_count++];

		if (!is_name(n->key))
			return reject_field(&one, "must be a short lower-case name");
		option->name = xstrdup(n->key);
		if (read_fields(&one, option_fields, option) < 0)
			return -1;
		if (option->values && option->fallback &&
		    !str_list_has(option->values, option->fallback))
			return reject_field(&one, "has a default that is not among its values");
	}
	return 0;
}

#define AT(field) offsetof(struct runner, field)
static const struct field fields[] = {
	{"name", AT(name), read_name, true},
	{"aliases", AT(aliases), read_names, false},
	{"title", AT(title), read_text, true},
	{"source", AT(source), read_source, true},
	{"command", AT(command), read_command, true},
	{"env", AT(env), read_env, false},
	{"program", AT(program), read_program, true},
	{"report", AT(report), read_bool, false},
	{"asks", AT(asks), read_bool, false},
	{"session_command", AT(session_command), read_command, false},
	{"prepare_command", AT(prepare_command), read_command, false},
	{"places", AT(places), read_paths, false},
	{"needs", AT(needs), read_paths, false},
	{"preload", AT(preload), read_bool, false},
	{"minimal_command", AT(minimal_command), read_command, false},
	{"zygote", AT(zygote), read_source, false},
	{"session_zygote", AT(session_zygote), read_source, false},
	{"extensions", AT(extensions), read_names, false},
	{"interpreters", AT(interpreters), read_names, false},
	{"commands", AT(commands), read_words, false},
	{"extends", AT(extends), read_name, false},
	{"hints", AT(hints), read_hints, false},
	{"version_command", AT(version_command), read_command, false},
	{"debian", AT(debian), read_packages, false},
	{"install", AT(install), read_text, false},
	{"hello", AT(hello), read_text, false},
	{"package_manager", AT(package_manager), read_name, false},
	{"library", AT(library), read_name, false},
	{"limits", AT(limits), read_limits, false},
	{"time_factor", AT(time_percent), read_factor, false},
	{"options", AT(options), read_options, false},
	{"compile_command", AT(compile_command), read_command, false},
	{"compile_if", AT(compile_if), read_name, false},
	{"compile_env", AT(compile_env), read_env, false},
	{"compile_limits", AT(compile_limits), read_limits, false},
	{"diagnostics", AT(diagnostics), read_words, false},
	{0},
};
#undef AT

static int check_compile_if(const struct runner *r, const char *path, struct error *err)
{
	const struct runner_option *option =
		r->compile_if ? runner_find_option(r, r->compile_if) : NULL;

	if (!r->compile_if || (r->compile_command && option && option->type == RUNNER_OPTION_BOOL))
		return 0;
	return error_set(err, ERR_CONFIG, 0,
	                 "%s: 'compile_if' must name an option of type bool, beside a "
	                 "'compile_command'",
	                 path);
}

int manifest_read(const char *path, struct runner *ret_runner, struct error *err)
{
	attr_cleanup(yamldoc_freep) struct yamldoc_node *root = yamldoc_load(path, err);
	const struct reading in = {.path = path, .node = root, .err = err};
	struct runner *r = ret_runner;

	if (!root || check_required(&in, fields) < 0 || read_fields(&in, fields, r) < 0)
		return -1;
	if (check_compile_if(r, path, err) < 0)
		return -1;
	if (!r->aliases)
		r->aliases = xcalloc(1, sizeof(*r->aliases));
	if (!r->env)
		r->env = xcalloc(1, sizeof(*r->env));
	if (r->time_percent == 0)
		r->time_percent = 100;
	return 0;
}

static void option_done(struct runner_option *option)
{
	free(option->name);
	free(option->description);
	free(option->fallback);
	free(option->before);
	str_list_free(option->values);
	str_list_free(option->compile);
	str_list_free(option->run);
}

void manifest_done(struct runner *r)
{
	char **texts[] = {&r->name,           &r->title,      &r->source,
	                  &r->program,        &r->zygote,     &r->hello,
	                  &r->session_zygote, &r->install,    &r->package_manager,
	                  &r->extends,        &r->compile_if, &r->library};
	char ***lists[] = {
		&r->aliases,         &r->command,      &r->session_command, &r->prepare_command,
		&r->places,          &r->needs,        &r->minimal_command, &r->env,
		&r->extensions,      &r->interpreters, &r->commands,        &r->version_command,
		&r->compile_command, &r->compile_env,  &r->diagnostics,     &r->debian};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(*texts[i]);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		str_list_free(*lists[i]);
	for (size_t i = 0; i < r->hints_count; i++)
		hint_done(&r->hints[i]);
	free(r->hints);
	for (size_t i = 0; i < r->options_count; i++)
		option_done(&r->options[i]);
	free(r->options);
	*r = (struct runner){0};
}
