/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/toolchains.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/sha256.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/template/root_scan.h"
#include "core/template/template.h"

/*
 * Theory of operation. A verdict has the digest of what it depends on. Reading a verdict computes
 * the digest again, except where a request is about to run a language that works: there a look at
 * the files is enough, because a toolchain that no longer works says so itself.
 *
 * A language may fail for a reason that the digest does not cover, like a module that npm installs.
 * So a verdict against a language is checked again, when it is old: by lists after LISTED_US, by
 * refused requests after REFUSED_US, which get their answer from the old verdict.
 */

#define ROOTS_MAX  32 /* whose verdicts are kept, without the host's */
#define LISTED_US  (60 * USEC_PER_SEC)
#define REFUSED_US (10 * USEC_PER_SEC)

/* What package managers change with every package. */
static const char *const package_lists[] = {
	"/var/lib/dpkg/status",  "/var/lib/rpm/rpmdb.sqlite", "/usr/lib/sysimage/rpm/rpmdb.sqlite",
	"/lib/apk/db/installed", "/var/lib/pacman/local",     "/usr/local/lib/node_modules",
	"/usr/lib/node_modules",
};

struct verdict {
	enum toolchain_state state;
	uint64_t at_us; /* 0: none yet */
	struct toolchain_key key;
	char *reason, *version; /* owned; NULL: none */
};

struct root {
	struct list node; /* toolchains.roots, in the order of their first verdicts */
	char name[BOX_ROOT_LEN];
	struct verdict verdicts[RUNNERS_MAX]; /* as runners_at */
};

struct toolchains {
	const char *const *bases; /* borrowed */
	struct root host;
	struct list roots;
	size_t count;
	toolchains_refusal_fn *on_refusal; /* NULL: none */
	void *ctx;
	char engine[BOX_ENGINE_LEN]; /* "": the default */
	struct toolchains *next;     /* owned: of another engine */
};

static void clear_root(struct root *root)
{
	for (size_t i = 0; i < RUNNERS_MAX; i++) {
		free(root->verdicts[i].reason);
		free(root->verdicts[i].version);
		root->verdicts[i] = (struct verdict){0};
	}
}

void toolchains_free(struct toolchains *all)
{
	while (all) {
		struct toolchains *next = all->next;
		struct root *root;

		LIST_FOREACH (root, &all->roots, struct root, node) {
			clear_root(root);
			free(root);
		}
		clear_root(&all->host);
		free(all);
		all = next;
	}
}

struct toolchains *toolchains_new(const char *const *bases)
{
	struct toolchains *all = NEW(struct toolchains);

	all->bases = bases;
	list_init(&all->roots);
	return all;
}

const struct toolchains *toolchains_find(const struct toolchains *all, const char *engine)
{
	while (all && !str_equal(all->engine, engine))
		all = all->next;
	return all;
}

struct toolchains *toolchains_get(struct toolchains *all, const char *engine)
{
	const struct toolchains *known = toolchains_find(all, engine);
	struct toolchains *more;

	if (known || !all)
		return (struct toolchains *)(uintptr_t)known;
	more = toolchains_new(all->bases);
	(void)!str_copy(more->engine, sizeof(more->engine), engine); /* a name of an engine */
	more->on_refusal = all->on_refusal;
	more->ctx = all->ctx;
	more->next = all->next;
	all->next = more;
	return more;
}

static struct root *find_root(const struct toolchains *all, const struct template *t)
{
	struct root *root;

	if (!template_has_own_root(t))
		return (struct root *)(uintptr_t)&all->host;
	LIST_FOREACH (root, &all->roots, struct root, node)
		if (str_equal(root->name, t->root))
			return root;
	return NULL;
}

/* NULL: never asked. */
static const struct verdict *find_verdict(const struct toolchains *all, const struct template *t,
                                          const struct runner *r)
{
	const struct root *root = all ? find_root(all, t) : NULL;
	const struct verdict *v = root ? &root->verdicts[r->index] : NULL;

	return v && v->at_us ? v : NULL;
}

/* NULL: all of its files are there. */
static const char *missing_file(const struct template *t, const struct runner *r)
{
	if (!template_has_own_root(t))
		return runner_missing(r);
	return template_command(t, r) ? NULL : r->program;
}

static const char *place_of(const struct template *t, const struct runner *r)
{
	const char *place;

	if (!template_has_own_root(t))
		return runner_place(r);
	place = template_program(t, r->program);
	return place || !r->minimal_command ? place : r->minimal_command[0];
}

static void add_file(struct sha256 *h, struct root_scan *scan, const char *path)
{
	uint64_t facts[5] = {0};
	struct stat st;

	if (path && root_scan_stat(scan, path, &st) == 0) {
		facts[0] = (uint64_t)st.st_dev;
		facts[1] = (uint64_t)st.st_ino;
		facts[2] = (uint64_t)st.st_size;
		facts[3] = (uint64_t)st.st_mtim.tv_sec;
		facts[4] = (uint64_t)st.st_mtim.tv_nsec;
	}
	/* With its NUL: no two lists of paths are alike. */
	sha256_add(h, path ? path : "", path ? strlen(path) + 1 : 1);
	sha256_add(h, facts, sizeof(facts));
}

/* An imported root never changes: its name is enough. */
void toolchains_key(const struct toolchains *all, const struct template *t, const struct runner *r,
                    struct toolchain_key *ret_key)
{
	bool changes = !template_has_own_root(t) || t->kind != TEMPLATE_ON_IMAGE;
	cleanup_close int fd =
		changes ? root_open(all->bases, template_has_own_root(t) ? t->root : "") : -1;
	struct root_scan scan = ROOT_SCAN(fd);
	struct sha256 h;

	sha256_init(&h);
	if (fd >= 0) {
		add_file(&h, &scan, place_of(t, r));
		for (char **need = r->needs; need && *need; need++)
			add_file(&h, &scan, *need);
		for (size_t i = 0; i < ARRAY_SIZE(package_lists); i++)
			add_file(&h, &scan, package_lists[i]);
	}
	sha256_end(&h, ret_key->digest);
}

static bool is_current(const struct toolchains *all, const struct template *t,
                       const struct runner *r, const struct verdict *v)
{
	struct toolchain_key key;

	toolchains_key(all, t, r, &key);
	return memcmp(&key, &v->key, sizeof(key)) == 0;
}

static bool is_refuted(const struct toolchains *all, const struct template *t,
                       const struct runner *r)
{
	const struct verdict *v = find_verdict(all, t, r);

	return v && v->state == TOOLCHAIN_FAILS && is_current(all, t, r, v);
}

bool toolchains_has(const struct toolchains *all, const struct template *t, const struct runner *r)
{
	return !missing_file(t, r) && !is_refuted(all, t, r);
}

void toolchains_view(const struct toolchains *all, const struct template *t, const struct runner *r,
                     struct toolchain_view *ret_view)
{
	const struct verdict *v = find_verdict(all, t, r);

	*ret_view = (struct toolchain_view){.missing = missing_file(t, r)};
	ret_view->is_there = !ret_view->missing;
	if (ret_view->missing || !v || !is_current(all, t, r, v))
		return;
	ret_view->is_there = v->state != TOOLCHAIN_FAILS;
	ret_view->is_checked = v->state == TOOLCHAIN_WORKS || v->state == TOOLCHAIN_FAILS;
	ret_view->missing = ret_view->is_there ? NULL : v->reason;
	ret_view->version = v->version;
}

/* The command first: a long reason is cut off. */
static void refuse(const struct template *t, const struct runner *r,
                   const struct toolchain_view *view, struct error *err)
{
	cleanup_free char *command = runner_install_command(r);
	cleanup_free char *where =
		template_has_own_root(t) ? xasprintf("in the root of template '%.64s'", t->spec.id)
					 : xstrdup("on the daemon's host");
	cleanup_free char *advice =
		!command                   ? xstrdup("")
		: template_has_own_root(t) ? xasprintf("; its image needs: %s", command)
		: r->debian ? xasprintf("; there run: millibox languages --install %s (%s)",
	                                r->name, command)
			    : xasprintf("; %s", command);

	(void)error_set(err, ERR_NO_LANGUAGE, 0, "'%s' %s %s%s. %s%s", r->name,
	                view->is_checked ? "does not work" : "is not installed", where, advice,
	                view->is_checked ? "It said: " : "It lacks ", view->missing);
	(void)!str_copy(err->field, sizeof(err->field), "language"); /* short literal */
}

int toolchains_require(const struct toolchains *all, const struct template *t,
                       const struct runner *r, struct error *err)
{
	const struct verdict *v;
	struct toolchain_view view;

	if (toolchains_has(all, t, r))
		return 0;
	toolchains_view(all, t, r, &view);
	refuse(t, r, &view, err);
	v = find_verdict(all, t, r);
	if (view.is_checked && all->on_refusal && clock_us() - v->at_us >= REFUSED_US)
		all->on_refusal(all->ctx, all->engine, t, r);
	return -1;
}

bool toolchains_is_due(const struct toolchains *all, const struct template *t,
                       const struct runner *r, bool again)
{
	const struct verdict *v = find_verdict(all, t, r);
	uint64_t age;

	if (missing_file(t, r))
		return false;
	if (again || !v || !is_current(all, t, r, v))
		return true;
	age = clock_us() - v->at_us;
	return (v->state == TOOLCHAIN_FAILS || v->state == TOOLCHAIN_UNKNOWN) && age >= LISTED_US;
}

void toolchains_on_refusal(struct toolchains *all, toolchains_refusal_fn *fn, void *ctx)
{
	for (; all; all = all->next) {
		all->on_refusal = fn;
		all->ctx = ctx;
	}
}

/* The oldest goes. */
static struct root *add_root(struct toolchains *all, const char *name)
{
	struct root *root;

	if (all->count == ROOTS_MAX) {
		root = LIST_FIRST(&all->roots, struct root, node);
		clear_root(root);
		list_remove(&root->node);
	} else {
		root = NEW(struct root);
		all->count++;
	}
	(void)!str_copy(root->name, sizeof(root->name), name); /* of the same size */
	list_append(&all->roots, &root->node);
	return root;
}

void toolchains_learn(struct toolchains *all, const struct template *t, const struct runner *r,
                      const struct toolchain_verdict *verdict)
{
	struct root *root = find_root(all, t);
	struct verdict *v;

	if (template_has_own_root(t) && !root)
		root = add_root(all, t->root);
	v = &root->verdicts[r->index];
	free(v->reason);
	free(v->version);
	*v = (struct verdict){
		.state = verdict->state,
		.key = verdict->key,
		.at_us = clock_us(),
		.reason = verdict->reason ? xstrdup(verdict->reason) : NULL,
		.version = verdict->version ? xstrdup(verdict->version) : NULL,
	};
}
