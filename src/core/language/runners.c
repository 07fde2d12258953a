/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/runners.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"
#include "core/language/manifest.h"

struct runners {
	struct runner items[RUNNERS_MAX];
	size_t count;
	struct map *names; /* names and aliases -> runner */
};

void runners_free(struct runners *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		manifest_done(&r->items[i]);
	map_free(r->names);
	free(r);
}

static void runners_freep(struct runners **r)
{
	runners_free(*r);
}

/* For the payload, which is another user. Not access(): the daemon's filter knows only stat(). */
static bool has_file(const char *path, mode_t rights)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & rights);
}

const char *runner_place(const struct runner *r)
{
	if (has_file(r->program, S_IXOTH))
		return r->program;
	for (char **place = r->places; place && *place; place++)
		if (has_file(*place, S_IXOTH))
			return *place;
	return NULL;
}

const char *runner_missing(const struct runner *r)
{
	if (!runner_place(r))
		return r->program;
	for (char **need = r->needs; need && *need; need++)
		if (!has_file(*need, S_IROTH | S_IXOTH))
			return *need;
	return NULL;
}

char *runner_install_command(const struct runner *r)
{
	cleanup_free char *command = xstrdup("apt-get install");

	if (!r->debian)
		return r->install ? xstrdup(r->install) : NULL;
	for (char **package = r->debian; *package; package++) {
		char *longer = xasprintf("%s %s", command, *package);

		free(command);
		command = longer;
	}
	return TAKE_PTR(command);
}

const struct runner_option *runner_find_option(const struct runner *r, const char *name)
{
	for (size_t i = 0; i < r->options_count; i++)
		if (str_equal(r->options[i].name, name))
			return &r->options[i];
	return NULL;
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
	r = &all->items[all->count];
	r->index = all->count++;
	if (manifest_read(path, r, err) < 0)
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

static int load_folder(struct runners *all, const char *dir, struct error *err)
{
	struct dirent **entries = NULL;
	size_t before = all->count;
	int count;
	int r = 0;

	/* Sorted: the same listings and errors on every host. */
	count = scandir(dir, &entries, is_candidate, alphasort);
	if (count < 0)
		return error_set(err, ERR_CONFIG, errno, "read the runners in '%s'", dir);
	for (int i = 0; i < count; i++) {
		if (r >= 0)
			r = load_one(all, dir, entries[i]->d_name, err);
		free(entries[i]);
	}
	free(entries);
	if (r >= 0 && all->count == before)
		r = error_set(err, ERR_CONFIG, 0, "no runner in '%s'", dir);
	return r;
}

/* An option may select another language only if there is one. */
static int check_options(const struct runners *all, const struct runner *r, struct error *err)
{
	for (size_t i = 0; i < r->options_count; i++) {
		const struct runner_option *option = &r->options[i];

		if (option->type != RUNNER_OPTION_LANGUAGE)
			continue;
		if (!option->values)
			return error_set(err, ERR_CONFIG, 0,
			                 "runner '%s': option '%s' must list its values", r->name,
			                 option->name);
		for (char **name = option->values; *name; name++)
			if (!runners_find(all, *name))
				return error_set(
					err, ERR_CONFIG, 0,
					"runner '%s': option '%s' names '%s', which no runner has",
					r->name, option->name, *name);
	}
	return 0;
}

static int check_extends(const struct runners *all, const struct runner *r, struct error *err)
{
	if (!r->extends || runners_find(all, r->extends))
		return 0;
	return error_set(err, ERR_CONFIG, 0, "runner '%s' extends '%s', which no runner has",
	                 r->name, r->extends);
}

struct runners *runners_load(const char *dir, char *const *more, struct error *err)
{
	attr_cleanup(runners_freep) struct runners *all = NEW(struct runners);

	all->names = map_new();
	if (load_folder(all, dir, err) < 0)
		return NULL;
	for (; more && *more; more++)
		if (load_folder(all, *more, err) < 0)
			return NULL;
	for (size_t i = 0; i < all->count; i++)
		if (check_options(all, &all->items[i], err) < 0 ||
		    check_extends(all, &all->items[i], err) < 0)
			return NULL;
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
