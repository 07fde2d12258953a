/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/templates.h"
#include "core/config/limits.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/language/env.h"
#include "core/template/images.h"
#include "core/template/toolchains.h"
#include "core/tenant/tenant.h"

/* A slot is what an id stands for: the current template, and the number of sessions that use any
 * version of it. Slots are found by "tenant/id"; built-ins by "/id": no tenant has an empty
 * name. */

#define KEY_LEN        (TENANT_NAME_MAX + TEMPLATE_ID_MAX + 2)
#define NAME_MAX_BYTES 255
#define SETTLE_US      USEC_PER_SEC /* between two searches for what a template lacks */

struct slot {
	struct list node; /* templates.slots, oldest first */
	struct template *now;
	struct tenant *tenant; /* held; NULL: built-in, or quotas off */
	size_t sessions;
};

struct templates {
	struct templates_config config;
	struct templates_events events;
	struct templates_watcher watcher;
	struct images *images;         /* owned */
	struct toolchains *toolchains; /* owned */
	struct map *by_key;
	struct list slots;
	struct list changes; /* struct change.node: unwritten */
	size_t count;        /* without built-ins */
};

static int make_key(char ret_key[KEY_LEN], const char *tenant, const char *id)
{
	return str_format(ret_key, KEY_LEN, "%s/%s", tenant, id);
}

static struct slot *slot_of(const struct templates *all, const char *tenant, const char *id)
{
	char key[KEY_LEN];

	/* Ids that do not fit do not exist. */
	return make_key(key, tenant, id) < 0 ? NULL : map_get(all->by_key, key);
}

static struct slot *find_slot(const struct templates *all, const char *tenant, const char *id)
{
	struct slot *slot = slot_of(all, tenant, id);

	return slot ? slot : slot_of(all, "", id);
}

static void settle_template(const struct templates *all, struct template *t)
{
	/* The same tenant's template whose imported root @image names. */
	const struct slot *slot = find_slot(all, t->tenant, t->spec.image);
	const struct template *other = slot ? slot->now : NULL;

	if (!t->root[0] && other && other->kind == TEMPLATE_ON_IMAGE) {
		(void)!str_copy(t->root, sizeof(t->root), other->root);
		t->kind = TEMPLATE_ON_IMAGE;
		t->image = image_ref(other->image);
	}
	t->settled_us = clock_us();
	template_settle(t, &all->config.host);
}

/* What it lacked may have been installed since. An imported root does not change. */
static struct template *refreshed(const struct templates *all, const struct slot *slot)
{
	struct template *t = slot->now;

	if (t->problem && t->kind != TEMPLATE_ON_IMAGE && clock_us() - t->settled_us >= SETTLE_US)
		settle_template(all, t);
	return t;
}

struct template *templates_find(const struct templates *all, const char *tenant, const char *id)
{
	const struct slot *slot = find_slot(all, tenant, id);

	return slot ? refreshed(all, slot) : NULL;
}

static bool is_seen_by(const struct slot *slot, const char *tenant)
{
	return template_is_builtin(slot->now) || str_equal(slot->now->tenant, tenant);
}

struct template *templates_at(const struct templates *all, const char *tenant, size_t index)
{
	struct slot *slot;

	LIST_FOREACH (slot, &all->slots, struct slot, node)
		if (is_seen_by(slot, tenant) && index-- == 0)
			// cppcheck-suppress CastIntegerToAddressAtReturn ; it is a pointer
			return refreshed(all, slot);
	return NULL;
}

struct template *templates_next(const struct templates *all, const char *tenant,
                                const struct template *t)
{
	const struct list *node = &find_slot(all, t->tenant, t->spec.id)->node;

	while ((node = node->next) != &all->slots) {
		const struct slot *slot = LIST_ENTRY(node, struct slot, node);

		if (is_seen_by(slot, tenant))
			// cppcheck-suppress CastIntegerToAddressAtReturn ; it is a pointer
			return refreshed(all, slot);
	}
	return NULL;
}

size_t templates_count(const struct templates *all, const char *tenant)
{
	struct slot *slot;
	size_t count = 0;

	LIST_FOREACH (slot, &all->slots, struct slot, node)
		count += is_seen_by(slot, tenant) ? 1 : 0;
	return count;
}

size_t templates_sessions(const struct templates *all, const struct template *t)
{
	const struct slot *slot = find_slot(all, t->tenant, t->spec.id);

	return slot ? slot->sessions : 0;
}

int templates_check_names(const char *id, const char *name, struct error *err)
{
	if (!id || !id_is_dotted(id, TEMPLATE_ID_MAX))
		return error_field(err, "id", "must be 1 to %d of A-Z a-z 0-9 _ - . (not first)",
		                   TEMPLATE_ID_MAX);
	if (!name || !name[0] || strlen(name) > NAME_MAX_BYTES)
		return error_field(err, "name", "must be 1 to %d bytes", NAME_MAX_BYTES);
	if (!utf8_is_valid(name, strlen(name)))
		return error_field(err, "name", "must be UTF-8 text");
	return 0;
}

/* Such a default would make every session fail. */
static int check_resources(const struct template_spec *spec, struct error *err)
{
	const struct {
		const char *field, *least;
		uint64_t value, min;
	} limits[] = {
		{"default_resources.memory", "16Mi", spec->memory_bytes, LIMIT_MEMORY_MIN},
		{"default_resources.disk", "1Mi", spec->disk_bytes, LIMIT_DISK_MIN},
		{"default_resources.cpu", "0.01", spec->cpu_millicores, LIMIT_CPU_MIN},
		{"default_resources.max_processes", "16", spec->max_processes, LIMIT_PROCESSES_MIN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limits[i].value > 0 && limits[i].value < limits[i].min)
			return error_field(err, limits[i].field, "must be at least %s",
			                   limits[i].least);
	return 0;
}

static int check_spec(const struct template_spec *spec, struct error *err)
{
	if (templates_check_names(spec->id, spec->name, err) < 0)
		return -1;
	if (!spec->image || !spec->image[0] || strlen(spec->image) > NAME_MAX_BYTES)
		return error_field(err, "image", "must be 1 to %d bytes", NAME_MAX_BYTES);
	if (check_resources(spec, err) < 0)
		return -1;
	if (env_check(spec->env, err) < 0) {
		(void)!str_copy(err->field, sizeof(err->field), "default_env_vars");
		return -1;
	}
	return template_check_lists(spec, err);
}

/* @self: the template being changed, or NULL. */
static int check_unique(const struct templates *all, const char *tenant,
                        const struct template_spec *spec, const struct slot *self,
                        struct error *err)
{
	struct slot *slot;

	LIST_FOREACH (slot, &all->slots, struct slot, node) {
		const struct template_spec *other = &slot->now->spec;

		if (slot == self || !is_seen_by(slot, tenant))
			continue;
		if (str_equal(other->id, spec->id))
			return error_set(err, ERR_CONFLICT, 0, "template '%s' already exists",
			                 spec->id);
		if (str_equal(other->name, spec->name))
			return error_set(err, ERR_CONFLICT, 0,
			                 "template '%s' already has the name '%.100s'", other->id,
			                 spec->name);
	}
	return 0;
}

/* A layer stays while a template uses it, whatever the quota. */
static void hold_packages(const struct templates *all, struct template *t)
{
	const struct image_record root = {
		.tenant = t->tenant, .name = t->spec.layer, .bytes = t->spec.layer_bytes};

	if (t->packages || !root.name || !str_has_prefix(root.name, LAYER_ROOT_PREFIX) ||
	    strlen(root.name) >= BOX_ROOT_LEN)
		return;
	t->packages = images_hold(all->images, &root, NULL);
}

static struct template *new_template(const struct templates *all, const char *tenant,
                                     const struct template_spec *spec)
{
	struct template *t = NEW(struct template);

	t->refs = 1;
	(void)!str_copy(t->tenant, sizeof(t->tenant), tenant); /* bounded in principals */
	template_spec_fill(&t->spec, spec);
	hold_packages(all, t);
	t->created_ms = t->updated_ms = clock_real_ms();
	return t;
}

static struct tenant *owner_of(const struct templates *all, const char *tenant)
{
	return all->config.tenants && tenant[0] ? tenants_find(all->config.tenants, tenant) : NULL;
}

/* @tenant is already counted. */
static void add_template(struct templates *all, struct template *t, struct tenant *tenant)
{
	struct slot *slot = NEW(struct slot);
	char key[KEY_LEN];

	slot->now = t;
	slot->tenant = tenant;
	tenant_hold(tenant);
	list_append(&all->slots, &slot->node);
	if (make_key(key, t->tenant, t->spec.id) < 0 || map_put(all->by_key, key, slot) < 0)
		abort(); /* callers checked */
	if (!template_is_builtin(t))
		all->count++;
}

struct change {
	struct list node;              /* templates.changes */
	struct templates *all;         /* NULL: freed */
	struct template *before, *now; /* references; NULL: does not exist */
	struct templates_done done;
};

static void change_free(struct change *change)
{
	list_remove(&change->node);
	template_unref(change->before);
	template_unref(change->now);
	free(change);
}

static void slot_free(struct slot *slot)
{
	list_remove(&slot->node);
	template_unref(slot->now);
	tenant_drop_template(slot->tenant);
	tenant_release(slot->tenant);
	free(slot);
}

static void take_out(struct templates *all, struct slot *slot)
{
	char key[KEY_LEN];

	if (make_key(key, slot->now->tenant, slot->now->spec.id) >= 0)
		(void)map_remove(all->by_key, key);
	all->count--;
	slot_free(slot);
}

static void notify_watcher(const struct templates *all, const struct template *t, bool listed)
{
	if (all->watcher.on_change)
		all->watcher.on_change(all->watcher.ctx, t, listed);
}

/* Unless it was changed again. */
static void undo_change(const struct change *change)
{
	const struct template *any = change->before ? change->before : change->now;
	struct slot *slot = slot_of(change->all, any->tenant, any->spec.id);

	if (!slot && !change->now) {
		/* Ignores the quota. */
		struct tenant *tenant = owner_of(change->all, any->tenant);

		(void)tenant_take_template(tenant, NULL);
		add_template(change->all, template_ref(change->before), tenant);
	} else if (slot && slot->now == change->now && change->before) {
		template_unref(slot->now);
		slot->now = template_ref(change->before);
	} else if (slot && slot->now == change->now) {
		take_out(change->all, slot);
	} else {
		return;
	}
	notify_watcher(change->all, any, !change->before || !change->now);
}

static void on_kept(void *ctx, const struct error *err)
{
	struct change *change = ctx;

	if (change->all && err)
		undo_change(change);
	if (change->done.fn)
		change->done.fn(change->done.ctx, err);
	change_free(change);
}

/* Call before making the change. Return: like the functions that change templates. */
static int persist_change(struct templates *all, struct template *before, struct template *now,
                          struct templates_done done, struct error *err)
{
	struct change *change;
	int r;

	if (!all->events.on_put)
		return 1;
	change = NEW(struct change);
	change->all = all;
	change->before = template_ref(before);
	change->now = template_ref(now);
	change->done = done;
	list_append(&all->changes, &change->node);
	r = (now ? all->events.on_put : all->events.on_delete)(
		all->events.ctx, now ? now : before, (struct templates_done){on_kept, change}, err);
	if (r < 0)
		change_free(change);
	return r;
}

/* Their writes are still queued: drop the callbacks. */
static void end_changes(struct templates *all)
{
	struct change *change;
	struct error err = {0};

	(void)error_set(&err, ERR_UNAVAILABLE, ECANCELED, "the daemon is stopping");
	LIST_FOREACH (change, &all->changes, struct change, node) {
		list_remove(&change->node);
		change->all = NULL;
		if (change->done.fn)
			change->done.fn(change->done.ctx, &err);
		change->done.fn = NULL;
	}
}

static int take_root(const struct templates *all, struct template *t,
                     const struct template_record *record, struct error *err)
{
	const struct image_record image = {.tenant = record->tenant,
	                                   .name = record->root,
	                                   .bytes = image_config_bytes(record->config)};

	if (!record->root)
		return 0;
	if (str_copy(t->root, sizeof(t->root), record->root) < 0)
		return error_set(err, ERR_INVALID, 0, "the name of its root is too long");
	t->kind = TEMPLATE_ON_IMAGE;
	/* A template from before a restart stays, whatever the quota. */
	t->image =
		record->image ? image_ref(record->image) : images_hold(all->images, &image, NULL);
	return 0;
}

int templates_adopt(struct templates *all, const struct template_record *record,
                    const struct templates_done *done, struct template **ret_template,
                    struct error *err)
{
	attr_cleanup(template_unrefp) struct template *t = NULL;
	struct tenant *tenant = owner_of(all, record->tenant);
	int r = 1;

	if (check_spec(&record->spec, err) < 0 ||
	    check_unique(all, record->tenant, &record->spec, NULL, err) < 0)
		return -1;
	if (all->count >= all->config.max)
		return error_set(err, ERR_BUSY, 0, "there are already %zu templates: delete one",
		                 all->count);
	t = new_template(all, record->tenant, &record->spec);
	t->config = record->config ? xstrdup(record->config) : NULL;
	if (record->created_ms) {
		t->created_ms = record->created_ms;
		t->updated_ms = record->updated_ms;
	}
	if (take_root(all, t, record, err) < 0)
		return -1;
	settle_template(all, t);
	/* An existing template with missing packages stays and reports the problem. */
	if (done && template_check_packages(t, all->config.host.bases, err) < 0)
		return -1;
	if (tenant_take_template(tenant, done ? err : NULL) < 0)
		return -1;
	if (done)
		r = persist_change(all, NULL, t, *done, err);
	if (r < 0) {
		tenant_drop_template(tenant);
		return -1;
	}
	add_template(all, t, tenant);
	notify_watcher(all, t, true);
	*ret_template = TAKE_PTR(t);
	return r;
}

int templates_create(struct templates *all, const char *tenant, const struct template_spec *spec,
                     struct templates_done done, struct template **ret_template, struct error *err)
{
	const struct template_record record = {.tenant = tenant, .spec = *spec};

	return templates_adopt(all, &record, &done, ret_template, err);
}

static struct slot *find_own(const struct templates *all, const char *tenant, const char *id,
                             struct error *err)
{
	struct slot *slot = find_slot(all, tenant, id);

	if (!slot)
		(void)error_set(err, ERR_TEMPLATE_NOT_FOUND, 0, "no template has this id");
	else if (template_is_builtin(slot->now))
		(void)error_set(err, ERR_DENIED, 0,
		                "template '%s' is built in: create one of your own",
		                slot->now->spec.id);
	else
		return slot;
	return NULL;
}

int templates_check(const struct templates *all, const char *tenant,
                    const struct template_spec *spec, const char *id, struct error *err)
{
	const struct slot *self = id ? find_own(all, tenant, id, err) : NULL;
	struct template_spec whole = {0};
	int r;

	if (id && !self)
		return -1;
	template_spec_fill(&whole, spec);
	if (self)
		template_spec_fill(&whole, &self->now->spec);
	r = check_spec(&whole, err) < 0 || check_unique(all, tenant, &whole, self, err) < 0 ? -1
	                                                                                    : 0;
	template_spec_done(&whole);
	return r;
}

int templates_update(struct templates *all, const struct templates_update *update,
                     struct templates_done done, struct template **ret_template, struct error *err)
{
	attr_cleanup(template_unrefp) struct template *t = NULL;
	const char *tenant = update->tenant;
	struct slot *slot = find_own(all, tenant, update->id, err);
	bool same_image;
	int r;

	if (!slot)
		return -1;
	t = new_template(all, tenant, update->spec);
	template_spec_fill(&t->spec, &slot->now->spec);
	hold_packages(all, t);
	if (!str_equal(t->spec.id, slot->now->spec.id))
		return error_field(err, "id", "cannot be changed");
	/* Policies judge a layer by the manager that installed it. */
	if (t->packages && !update->spec->layer &&
	    !str_equal(t->spec.manager, slot->now->spec.manager))
		return error_field(err, "manager",
		                   "the template has packages of %s: name the packages that "
		                   "replace them, or a lock",
		                   slot->now->spec.manager);
	same_image = str_equal(t->spec.image, slot->now->spec.image);
	t->created_ms = slot->now->created_ms;
	t->config = slot->now->config && same_image ? xstrdup(slot->now->config) : NULL;
	if (same_image) {
		memcpy(t->root, slot->now->root, sizeof(t->root));
		t->kind = slot->now->kind;
		t->image = image_ref(slot->now->image);
	}
	if (check_spec(&t->spec, err) < 0 || check_unique(all, tenant, &t->spec, slot, err) < 0)
		return -1;
	settle_template(all, t);
	if (template_check_packages(t, all->config.host.bases, err) < 0)
		return -1;
	r = persist_change(all, slot->now, t, done, err);
	if (r < 0)
		return -1;
	template_unref(slot->now);
	slot->now = TAKE_PTR(t);
	*ret_template = slot->now;
	notify_watcher(all, slot->now, false);
	return r;
}

struct template *templates_past(const struct templates *all, const struct template *now,
                                const struct templates_then *then)
{
	const char *root = then->image->name;
	const char *image = root[0] ? root : TEMPLATE_HOST;
	const struct template_spec spec = {.image = (char *)(uintptr_t)image, /* copied */
	                                   .id = now->spec.id};
	struct template *t = new_template(all, now->tenant, &spec);

	template_spec_fill(&t->spec, then->spec ? then->spec : &now->spec);
	hold_packages(all, t);
	t->updated_ms = then->updated_ms;
	if (str_has_prefix(root, IMAGE_ROOT_PREFIX) &&
	    str_copy(t->root, sizeof(t->root), root) >= 0) {
		t->kind = TEMPLATE_ON_IMAGE;
		t->image = images_hold(all->images, then->image, NULL);
	}
	template_settle(t, &all->config.host);
	return t;
}

struct template *templates_with_layer(const struct templates *all, const struct template *base,
                                      const char *tenant, const struct template_spec *layer)
{
	static const struct template_spec host = {
		.id = (char *)TEMPLATE_HOST, /* copied */
		.name = (char *)TEMPLATE_HOST,
		.image = (char *)TEMPLATE_HOST,
	};
	struct template *t = new_template(all, tenant, layer);

	template_spec_fill(&t->spec, base ? &base->spec : &host);
	t->updated_ms =
		1; /* differs from every listed one: a restored session does not take that */
	if (base) {
		t->created_ms = base->created_ms;
		t->config = base->config ? xstrdup(base->config) : NULL;
		memcpy(t->root, base->root, sizeof(t->root));
		t->kind = base->kind;
		t->image = image_ref(base->image);
	}
	template_settle(t, &all->config.host);
	return t;
}

ssize_t templates_lack(const struct templates *all, const struct template *t, char *const *packages)
{
	return template_lacks(all->config.host.bases, t ? t->root : "", packages);
}

struct toolchains *templates_toolchains(const struct templates *all)
{
	return all->toolchains;
}

struct images *templates_images(const struct templates *all)
{
	return all->images;
}

size_t templates_made(const struct templates *all)
{
	return all->count;
}

int templates_delete(struct templates *all, const char *tenant, const char *id,
                     struct templates_done done, struct error *err)
{
	attr_cleanup(template_unrefp) struct template *gone = NULL;
	struct slot *slot = find_own(all, tenant, id, err), *other;
	size_t others = 0; /* on the same imported root */
	int r;

	if (!slot)
		return -1;
	LIST_FOREACH (other, &all->slots, struct slot, node)
		others += other != slot && slot->now->kind == TEMPLATE_ON_IMAGE &&
		          str_equal(other->now->root, slot->now->root);
	if (slot->sessions > 0)
		return error_set(err, ERR_TEMPLATE_IN_USE, 0, "%zu session%s use%s template '%s'",
		                 slot->sessions, slot->sessions == 1 ? "" : "s",
		                 slot->sessions == 1 ? "s" : "", id);
	if (others > 0 && slot->now->config)
		return error_set(err, ERR_TEMPLATE_IN_USE, 0,
		                 "%zu other templates use the image of '%s'", others, id);
	r = persist_change(all, slot->now, NULL, done, err);
	if (r < 0)
		return -1;
	gone = template_ref(slot->now);
	take_out(all, slot);
	notify_watcher(all, gone, true);
	return r;
}

struct template *templates_get(const struct templates *all, const char *tenant, const char *id,
                               struct error *err)
{
	struct template *t = templates_find(all, tenant, id ? id : TEMPLATE_DEFAULT);

	if (!t) {
		(void)error_field(err, "template_id", "no template has the id '%.64s'",
		                  id ? id : TEMPLATE_DEFAULT);
		return NULL;
	}
	if (t->problem) {
		(void)error_field(err, "template_id", "'%s' cannot be used: %.160s", t->spec.id,
		                  t->problem);
		return NULL;
	}
	(void)template_ref(t);
	return t;
}

void templates_use(struct templates *all, const struct template *t)
{
	struct slot *slot = find_slot(all, t->tenant, t->spec.id);

	if (slot)
		slot->sessions++;
}

void templates_release(struct templates *all, const struct template *t)
{
	struct slot *slot = find_slot(all, t->tenant, t->spec.id);

	if (slot && slot->sessions > 0)
		slot->sessions--;
}

/* clang-format off */
static const struct builtin {
	const char *id, *name, *description, *language, *runtime_type;
	const char *packages[4];
	const char *preload[4]; /* nearly every program imports these */
} builtins[] = {
	{"python-basic", "Python", "The host's Python 3 with its standard library", "python", "python3", {NULL}, {NULL}},
	{"python-datascience", "Python for data", "The host's Python 3 with numpy, pandas and matplotlib", "python", "python3", {"numpy", "pandas", "matplotlib", NULL}, {"numpy", "pandas", "matplotlib.pyplot", NULL}},
	{"shell", "Shell", "Bash and the host's programs", "shell", "shell", {NULL}, {NULL}},
	{"nodejs-basic", "Node.js", "The host's Node.js", "javascript", "nodejs20", {NULL}, {NULL}},
};
/* clang-format on */

static void add_builtin(struct templates *all, const struct builtin *row)
{
	const struct template_spec spec = {
		.id = (char *)row->id, /* copied */
		.name = (char *)row->name,
		.description = (char *)row->description,
		.image = (char *)TEMPLATE_HOST,
		.language = (char *)row->language,
		.runtime_type = (char *)row->runtime_type,
		.packages = (char **)row->packages,
		.preload = (char **)row->preload,
	};
	struct template *t = new_template(all, "", &spec);

	settle_template(all, t);
	add_template(all, t, NULL);
}

struct templates *templates_new(const struct templates_config *config)
{
	struct templates *all = NEW(struct templates);

	all->config = *config;
	all->by_key = map_new();
	all->images = images_new(config->tenants);
	all->config.host.toolchains = all->toolchains = toolchains_new(config->host.bases);
	list_init(&all->slots);
	list_init(&all->changes);
	for (size_t i = 0; i < ARRAY_SIZE(builtins); i++)
		add_builtin(all, &builtins[i]);
	return all;
}

void templates_set_events(struct templates *all, const struct templates_events *events)
{
	all->events = *events;
}

void templates_watch(struct templates *all, const struct templates_watcher *watcher)
{
	all->watcher = watcher ? *watcher : (struct templates_watcher){0};
}

void templates_free(struct templates *all)
{
	struct slot *slot;

	if (!all)
		return;
	end_changes(all);
	LIST_FOREACH (slot, &all->slots, struct slot, node)
		slot_free(slot);
	map_free(all->by_key);
	images_free(all->images);
	toolchains_free(all->toolchains);
	free(all);
}
