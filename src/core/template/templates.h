/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: all templates: built-ins, which every tenant has and none can change, and each tenant's own.
 * Ids and names are unique within a tenant and differ from built-ins. In memory; templates_events
 * persists changes.
 *
 * Creating, changing or loading a template looks up its image and searches programs and packages in
 * the root. An unusable template is kept and says why.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/template/template.h"
#include "core/template/template_settle.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct image;
struct image_record;
struct images;
struct templates;
struct tenants;

struct templates_config {
	struct template_host host;
	size_t max;                    /* of all tenants */
	const struct tenants *tenants; /* NULL: quotas off */
};

/* Called once, from the loop: when the change is on disk, or with @err when a failed write undid
 * it. */
struct templates_done {
	void (*fn)(void *ctx, const struct error *err);
	void *ctx;
};

/* Called during the change; all may be NULL. -1: cannot be queued, and the change is not made; else
 * @done follows. */
struct templates_events {
	void *ctx;
	int (*on_put)(void *ctx, const struct template *t, struct templates_done done,
	              struct error *err);
	int (*on_delete)(void *ctx, const struct template *t, struct templates_done done,
	                 struct error *err);
};

/* Notified when a change is made or undone. */
struct templates_watcher {
	void *ctx;
	/* @listed: added or removed; else updated. */
	void (*on_change)(void *ctx, const struct template *t, bool listed);
};

void templates_free(struct templates *all);
struct templates *templates_new(const struct templates_config *config) attr_owned(templates_free);
void templates_set_events(struct templates *all, const struct templates_events *events);
/** templates_watch - at most one watcher; NULL: none. */
void templates_watch(struct templates *all, const struct templates_watcher *watcher);

/** templates_find - borrowed; NULL: neither @tenant nor the built-ins have this id. */
struct template *templates_find(const struct templates *all, const char *tenant, const char *id);
/** templates_at - built-ins first, then @tenant's, oldest first; NULL past the end. */
struct template *templates_at(const struct templates *all, const char *tenant, size_t index);
/** templates_next - in that order; may be NULL. */
struct template *templates_next(const struct templates *all, const char *tenant,
                                const struct template *t);
size_t templates_count(const struct templates *all, const char *tenant);
/** templates_sessions - living sessions that use it. */
size_t templates_sessions(const struct templates *all, const struct template *t);

/** templates_check_names - ERR_INVALID with the field. */
int templates_check_names(const char *id, const char *name, struct error *err) attr_must_check;

/** templates_check - whether a template of @spec could be created, or the one with @id (NULL: none)
 * changed to it, before its packages are installed. */
int templates_check(const struct templates *all, const char *tenant,
                    const struct template_spec *spec, const char *id,
                    struct error *err) attr_must_check;

/* Changes take effect at once; @done follows when they are on disk. Return: 0; 1: not persisted,
 * @done is not called; -1: refused. */

/** templates_create - ERR_CONFLICT, ERR_INVALID with the field, ERR_QUOTA. @spec is copied. */
int templates_create(struct templates *all, const char *tenant, const struct template_spec *spec,
                     struct templates_done done, struct template **ret_template,
                     struct error *err) attr_must_check;

struct templates_update {
	const char *tenant, *id;
	const struct template_spec *spec;
};
/** templates_update - change what the spec sets. ERR_TEMPLATE_NOT_FOUND, ERR_DENIED. */
int templates_update(struct templates *all, const struct templates_update *update,
                     struct templates_done done, struct template **ret_template,
                     struct error *err) attr_must_check;
/** templates_delete - ERR_TEMPLATE_IN_USE while sessions or templates need it. */
int templates_delete(struct templates *all, const char *tenant, const char *id,
                     struct templates_done done, struct error *err) attr_must_check;

/* From the store or an import. */
struct template_record {
	const char *tenant;
	struct template_spec spec; /* borrowed */
	const char *root;          /* imported root; NULL: none */
	struct image *image;       /* the same, if known; borrowed */
	const char *config;        /* JSON; NULL */
	uint64_t created_ms, updated_ms;
};
/** templates_adopt - @done NULL: already persisted; else like a change. */
int templates_adopt(struct templates *all, const struct template_record *record,
                    const struct templates_done *done, struct template **ret_template,
                    struct error *err) attr_must_check;

/**
 * templates_get - @id NULL: TEMPLATE_DEFAULT. ERR_INVALID with field template_id if it is unusable.
 * Return: a reference, or NULL with *err.
 */
struct template *templates_get(const struct templates *all, const char *tenant, const char *id,
                               struct error *err) attr_must_check;
/* A template when a box was created from it. Borrowed. */
struct templates_then {
	const struct image_record *image;
	const struct template_spec *spec; /* NULL: unknown, as now */
	uint64_t updated_ms;
};
/** templates_past - @now as it was then. Return: a reference. */
struct template *templates_past(const struct templates *all, const struct template *now,
                                const struct templates_then *then) attr_must_check;
/** templates_lack - index of the first of @packages that the root of @t (NULL: the host's) lacks;
 * -1: none. */
ssize_t templates_lack(const struct templates *all, const struct template *t,
                       char *const *packages);
/** templates_with_layer - @base (NULL: the host's root) with packages, manager, lock and layer of
 * @layer, for one execution or session; not listed. Return: a reference. */
struct template *templates_with_layer(const struct templates *all, const struct template *base,
                                      const char *tenant,
                                      const struct template_spec *layer) attr_must_check;
/** templates_toolchains - which languages work in the host's root and those of templates. */
struct toolchains *templates_toolchains(const struct templates *all);
/** templates_images - imported roots in use. */
struct images *templates_images(const struct templates *all);
/** templates_made - number, without built-ins. */
size_t templates_made(const struct templates *all);
/** templates_use, templates_release - a session starts or stops using it. */
void templates_use(struct templates *all, const struct template *t);
void templates_release(struct templates *all, const struct template *t);
