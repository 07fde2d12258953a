/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: all templates: the built-ins, which every tenant has and none can change, and those of
 * each tenant. Ids and names are unique within a tenant and may not be a built-in's. In memory;
 * changes are persisted through templates_events.
 *
 * Whether a template is usable is determined when it is created, changed or loaded: its image is
 * looked up, and programs and packages are searched in the root. An unusable template is kept and
 * says why.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/template/template.h"
#include "core/template/template_settle.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Callback of a change, called once, from the loop: when it is on disk, or with @err when it was
 * undone because the write failed. */
struct templates_done {
	void (*fn)(void *ctx, const struct error *err);
	void *ctx;
};

/* Persists changes. Called during the change; all may be NULL. -1: cannot be queued now, and the
 * change is not made; else @done follows. */
struct templates_events {
	void *ctx;
	int (*on_put)(void *ctx, const struct template *t, struct templates_done done,
	              struct error *err);
	int (*on_delete)(void *ctx, const struct template *t, struct templates_done done,
	                 struct error *err);
};

/* Is notified when a change is made, and when it is undone. */
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

/** templates_find - NULL if neither @tenant nor the built-ins have this id. Borrowed. */
struct template *templates_find(const struct templates *all, const char *tenant, const char *id);
/** templates_at - built-ins first, then @tenant's, oldest first; NULL past the end. */
struct template *templates_at(const struct templates *all, const char *tenant, size_t index);
/** templates_next - the one after @t in that order, or NULL. */
struct template *templates_next(const struct templates *all, const char *tenant,
                                const struct template *t);
size_t templates_count(const struct templates *all, const char *tenant);
/** templates_sessions - how many living sessions use it. */
size_t templates_sessions(const struct templates *all, const struct template *t);

/** templates_check_names - whether id and name are valid; ERR_INVALID with the field. */
int templates_check_names(const char *id, const char *name, struct error *err) attr_must_check;

/* Changes. They take effect at once; @done is called when they are on disk. Return: 0; 1: not
 * persisted, @done is not called; -1: refused. */

/** templates_create - ERR_CONFLICT, ERR_INVALID with the field, ERR_QUOTA. @spec is copied. */
int templates_create(struct templates *all, const char *tenant, const struct template_spec *spec,
                     struct templates_done done, struct template **ret_template,
                     struct error *err) attr_must_check;

/* The new state of @id of @tenant. */
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

/* A template from the store or from an import. */
struct template_record {
	const char *tenant;
	struct template_spec spec; /* borrowed */
	const char *root;          /* name of an imported root; NULL: none */
	struct image *image;       /* the same, if the caller has it; borrowed */
	const char *config;        /* JSON; NULL */
	uint64_t created_ms, updated_ms;
};
/** templates_adopt - @done NULL: it is already persisted; else like a change. */
int templates_adopt(struct templates *all, const struct template_record *record,
                    const struct templates_done *done, struct template **ret_template,
                    struct error *err) attr_must_check;

/**
 * templates_get - the template of @id (NULL: TEMPLATE_DEFAULT) if it is usable: ERR_INVALID with
 * the field template_id otherwise. Return: a reference, or NULL with *err.
 */
struct template *templates_get(const struct templates *all, const char *tenant, const char *id,
                               struct error *err) attr_must_check;
/* What a template was when a box was created from it. Borrowed. */
struct templates_then {
	const struct image_record *image;
	const struct template_spec *spec; /* NULL: unknown, assumed to be as now */
	uint64_t updated_ms;
};
/** templates_past - @now as it was then. Return: a reference. */
struct template *templates_past(const struct templates *all, const struct template *now,
                                const struct templates_then *then) attr_must_check;
/** templates_images - the imported roots that templates and boxes use. */
struct images *templates_images(const struct templates *all);
/** templates_made - their number, without the built-in ones. */
size_t templates_made(const struct templates *all);
/** templates_use, templates_release - a session starts or stops using it. */
void templates_use(struct templates *all, const struct template *t);
void templates_release(struct templates *all, const struct template *t);
