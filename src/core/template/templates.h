/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: all templates: the built-ins, which everybody has and nobody changes, and those of each
 * tenant. Ids and names are a tenant's own and may not be a built-in's. In memory; what changes is
 * told to whoever keeps it (templates_events).
 *
 * Whether a template can be used is settled when it is made, changed or loaded: its image is looked
 * up, programs and packages are looked for in the root. One that cannot be used is kept all the
 * same and says why.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/template/template.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_request;
struct image;
struct image_record;
struct images;
struct runners;
struct templates;
struct tenants;

struct templates_config {
	const struct runners *runners;
	/* NULL-terminated: directories with roots; the first one has the imported images. */
	const char *const *bases;
	bool has_roots;                /* the driver can make boxes on them */
	size_t max;                    /* of all tenants together */
	const struct tenants *tenants; /* NULL: nobody has quotas */
};

/* Whom a change is told to, once, from the loop: when it is on the disk, or, with @err, was undone
 * because it could not be written. */
struct templates_done {
	void (*fn)(void *ctx, const struct error *err);
	void *ctx;
};

/* Who keeps them. Called from inside the change; @ctx may be NULL with all others. -1: it cannot be
 * kept now, and the change is not made; else @done follows. */
struct templates_events {
	void *ctx;
	int (*on_put)(void *ctx, const struct template *t, struct templates_done done,
	              struct error *err);
	int (*on_delete)(void *ctx, const struct template *t, struct templates_done done,
	                 struct error *err);
};

/* Who is told what has changed, and nothing more: when a change is made, and when it is undone. */
struct templates_watcher {
	void *ctx;
	/* @listed: one has come or gone; else it is another than it was. */
	void (*on_change)(void *ctx, const struct template *t, bool listed);
};

void templates_free(struct templates *all);
struct templates *templates_new(const struct templates_config *config) attr_owned(templates_free);
void templates_set_events(struct templates *all, const struct templates_events *events);
/** templates_watch - at most one watcher; NULL: none any more. */
void templates_watch(struct templates *all, const struct templates_watcher *watcher);

/** templates_find - NULL when @tenant has none of this id and it is no built-in. Borrowed. */
struct template *templates_find(const struct templates *all, const char *tenant, const char *id);
/** templates_at - built-ins first, then @tenant's, oldest first; NULL past the end. */
struct template *templates_at(const struct templates *all, const char *tenant, size_t index);
/** templates_next - of those the one behind @t, which is in the table; NULL: there is none. */
struct template *templates_next(const struct templates *all, const char *tenant,
                                const struct template *t);
size_t templates_count(const struct templates *all, const char *tenant);
/** templates_sessions - how many living sessions use it. */
size_t templates_sessions(const struct templates *all, const struct template *t);

/** templates_check_names - whether one could be called so; ERR_INVALID with the field. */
int templates_check_names(const char *id, const char *name, struct error *err) attr_must_check;

/* Changes. They hold at once; @done tells when they are on the disk. Return: 0; 1: nobody keeps
 * them, and @done is not called; -1: refused. */

/**
 * templates_create - ERR_CONFLICT for an id or a name in use, ERR_INVALID with the field,
 * ERR_QUOTA. What @spec points to is copied.
 */
int templates_create(struct templates *all, const char *tenant, const struct template_spec *spec,
                     struct templates_done done, struct template **ret_template,
                     struct error *err) attr_must_check;

/* What @id of @tenant is to become. */
struct templates_update {
	const char *tenant, *id;
	const struct template_spec *spec;
};
/** templates_update - what the spec says; the rest stays. ERR_TEMPLATE_NOT_FOUND, ERR_DENIED. */
int templates_update(struct templates *all, const struct templates_update *update,
                     struct templates_done done, struct template **ret_template,
                     struct error *err) attr_must_check;
/** templates_delete - ERR_TEMPLATE_IN_USE while sessions or templates need it. */
int templates_delete(struct templates *all, const char *tenant, const char *id,
                     struct templates_done done, struct error *err) attr_must_check;

/* One as it was kept, or as an import made it. */
struct template_record {
	const char *tenant;
	struct template_spec spec; /* borrowed */
	const char *root;          /* name of an imported root; NULL: none */
	struct image *image;       /* the same, if the caller has it; borrowed */
	const char *config;        /* JSON; NULL */
	uint64_t created_ms, updated_ms;
};
/** templates_adopt - @done NULL: it was kept before; else as for a change. */
int templates_adopt(struct templates *all, const struct template_record *record,
                    const struct templates_done *done, struct template **ret_template,
                    struct error *err) attr_must_check;

/** templates_get - what @id names (NULL: TEMPLATE_DEFAULT), if it can be used: ERR_INVALID with the
 * field template_id otherwise. Return: a reference, or NULL with *err. */
struct template *templates_get(const struct templates *all, const char *tenant, const char *id,
                               struct error *err) attr_must_check;
/* What a template was when a box was made of it. Borrowed. */
struct templates_then {
	const struct image_record *image;
	const struct template_spec *spec; /* NULL: not known, and taken to be as it is now */
	uint64_t updated_ms;
};
/** templates_past - @now as it was then. Return: a reference. */
struct template *templates_past(const struct templates *all, const struct template *now,
                                const struct templates_then *then) attr_must_check;
/** templates_images - the imported roots that templates and boxes stand on. */
struct images *templates_images(const struct templates *all);
/** templates_made - how many there are, without the built-in ones. */
size_t templates_made(const struct templates *all);
/** templates_use, templates_release - a session began, or ended, to use it. */
void templates_use(struct templates *all, const struct template *t);
void templates_release(struct templates *all, const struct template *t);
