/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/runners.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"
#include "core/config/yamldoc.h"

#define RUNNERS_MAX 64
#define NAME_LEN    64

struct runners {
	struct runner items[RUNNERS_MAX];
	size_t count;
	struct map *names; /* names and aliases -> runner */
};

static void runner_done(struct runner *r)
{
	free(r->name);
	str_list_free(r->aliases);
	free(r->title);
	free(r->source);
	free(r->program);
	str_list_free(r->command);
	str_list_free(r->session_command);
	str_list_free(r->prepare_command);
	str_list_free(r->places);
	str_list_free(r->minimal_command);
	str_list_free(r->env);
	free(r->zygote);
	free(r->session_zygote);
	*r = (struct runner){0};
}

void runners_free(struct runners *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		runner_done(&r->items[i]);
	map_free(r->names);
	free(r);
}

static void runners_freep(struct runners **r)
{
	runners_free(*r);
}

/* The manifest being parsed, for error messages. */
struct reading {
	const char *path;
	const struct yamldoc_node *node;
	struct error *err;
};

static int reject_field(const struct reading *in, const char *why)
{
	return error_set(in->err, ERR_CONFIG, 0, "%s:%u: '%s' %s", in->path, in->node->line,
	                 in->node->key, why);
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

static int read_list(const struct reading *in, char ***ret_list)
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
	*ret_list = TAKE_PTR(list);
	return 0;
}

static int read_name(const struct reading *in, void *field)
{
	if (read_text(in, field) < 0)
		return -1;
	return is_name(*(char **)field) ? 0 : reject_field(in, "must be a short lower-case name");
}

static int read_aliases(const struct reading *in, void *field)
{
	if (read_list(in, field) < 0)
		return -1;
	for (char **alias = *(char ***)field; *alias; alias++)
		if (!is_name(*alias))
			return reject_field(in, "must be short lower-case names");
	return 0;
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

	if (read_list(in, field) < 0)
		return -1;
	first = **(char ***)field;
	if (!first || (*first != '/' && !str_has_prefix(first, "{runner}/")))
		return reject_field(in, "must begin with an absolute path or {runner}/");
	return 0;
}

static int read_places(const struct reading *in, void *field)
{
	if (read_list(in, field) < 0)
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

#define AT(field) offsetof(struct runner, field)
static const struct field {
	const char *key;
	size_t offset;
	int (*read)(const struct reading *in, void *field);
	bool required;
} fields[] = {
	{"name", AT(name), read_name, true},
	{"aliases", AT(aliases), read_aliases, false},
	{"title", AT(title), read_text, true},
	{"source", AT(source), read_source, true},
	{"command", AT(command), read_command, true},
	{"env", AT(env), read_env, false},
	{"program", AT(program), read_program, true},
	{"report", AT(report), read_bool, false},
	{"asks", AT(asks), read_bool, false},
	{"session_command", AT(session_command), read_command, false},
	{"prepare_command", AT(prepare_command), read_command, false},
	{"places", AT(places), read_places, false},
	{"preload", AT(preload), read_bool, false},
	{"minimal_command", AT(minimal_command), read_command, false},
	{"zygote", AT(zygote), read_source, false},
	{"session_zygote", AT(session_zygote), read_source, false},
};

static int check_required(const struct yamldoc_node *root, const char *path, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct yamldoc_node *n = root->first;

		while (n && !str_equal(n->key, fields[i].key))
			n = n->next;
		if (!n && fields[i].required)
			return error_set(err, ERR_CONFIG, 0, "%s: '%s' is missing", path,
			                 fields[i].key);
	}
	return 0;
}

static int read_manifest(const char *path, struct runner *r, struct error *err)
{
	attr_cleanup(yamldoc_freep) struct yamldoc_node *root = yamldoc_load(path, err);

	if (!root || check_required(root, path, err) < 0)
		return -1;
	for (const struct yamldoc_node *n = root->first; n; n = n->next) {
		const struct reading in = {.path = path, .node = n, .err = err};
		size_t i = 0;

		while (i < ARRAY_SIZE(fields) && !str_equal(fields[i].key, n->key))
			i++;
		if (i == ARRAY_SIZE(fields))
			return reject_field(&in, "is not a key of a manifest");
		if (fields[i].read(&in, (char *)r + fields[i].offset) < 0)
			return -1;
	}
	if (!r->aliases)
		r->aliases = xcalloc(1, sizeof(*r->aliases));
	if (!r->env)
		r->env = xcalloc(1, sizeof(*r->env));
	r->installed = access(r->program, X_OK) == 0;
	return 0;
}

bool runner_is_installed(const struct runner *r)
{
	return r->installed || access(r->program, X_OK) == 0;
}

static int add_name(struct runners *all, const char *name, struct runner *r, struct error *err)
{
	const struct runner *other = map_get(all->names, name);

	if (other)
		return error_set(err, ERR_CONFIG, 0, "runners '%s' and '%s' both claim '%s'",
		                 other->name, r->name, name);
	(void)!map_put(all->names, name, r); /* looked up above */
	return 0;
}

static int load_one(struct runners *all, const char *dir, const char *name, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/%s/manifest.yaml", dir, name);
	struct runner *r;

	/* Without a manifest: a cache, a shared module. */
	if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (all->count == RUNNERS_MAX)
		return error_set(err, ERR_CONFIG, 0, "%s: more than %d runners", dir, RUNNERS_MAX);
	r = &all->items[all->count++];
	if (read_manifest(path, r, err) < 0)
		return -1;
	/* The box finds the runner's files by the folder's name. */
	if (!str_equal(r->name, name))
		return error_set(err, ERR_CONFIG, 0, "%s: 'name' must be '%s', like the folder",
		                 path, name);
	if (add_name(all, r->name, r, err) < 0)
		return -1;
	for (char **alias = r->aliases; *alias; alias++)
		if (add_name(all, *alias, r, err) < 0)
			return -1;
	return 0;
}

static int is_candidate(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

struct runners *runners_load(const char *dir, struct error *err)
{
	attr_cleanup(runners_freep) struct runners *all = NEW(struct runners);
	struct dirent **entries = NULL;
	int count;
	int r = 0;

	all->names = map_new();
	/* Sorted: the same listings and errors on every host. */
	count = scandir(dir, &entries, is_candidate, alphasort);
	if (count < 0) {
		error_set(err, ERR_CONFIG, errno, "read the runners in '%s'", dir);
		return NULL;
	}
	for (int i = 0; i < count; i++) {
		if (r >= 0)
			r = load_one(all, dir, entries[i]->d_name, err);
		free(entries[i]);
	}
	free(entries);
	if (r < 0)
		return NULL;
	if (all->count == 0) {
		error_set(err, ERR_CONFIG, 0, "no runner in '%s'", dir);
		return NULL;
	}
	return TAKE_PTR(all);
}

const struct runner *runners_find(const struct runners *r, const char *language)
{
	return map_get(r->names, language);
}

const struct runner *runners_at(const struct runners *r, size_t index)
{
	return index < r->count ? &r->items[index] : NULL;
}
