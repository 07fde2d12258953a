/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant/tenant.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "core/config/config.h"

struct tenants {
	const struct config *config;
	struct map *by_name;
	struct list all; /* struct tenant.node */
};

struct quota_row {
	const char *name;
	uint64_t max;
	size_t setting; /* default, in struct config */
	const char *remedy;
};

#define AT(field) offsetof(struct config, field)

#define BURST_SECONDS 2 /* of the rate, by default */

static const struct quota_row rows[] = {
	[QUOTA_SESSIONS] = {"sessions", 65536, AT(quota_sessions), "terminate or delete a session"},
	[QUOTA_EXECUTIONS] = {"executions", 65536, AT(quota_executions),
                              "wait until an execution ends, or cancel one"},
	[QUOTA_QUEUED] = {"queued", 1000000, AT(quota_queued),
                          "wait until queued executions have run"},
	[QUOTA_MEMORY] = {"memory", UINT64_C(1) << 50, AT(quota_memory_bytes),
                          "end a session or an execution, or request less resources.memory"},
	[QUOTA_REQUESTS] = {"requests_per_second", 1000000, AT(quota_requests),
                            "send fewer requests per second"},
	[QUOTA_BURST] = {"burst", 1000000, AT(quota_burst), "send fewer requests at once"},
	[QUOTA_TEMPLATES] = {"templates", 65536, AT(quota_templates), "delete a template"},
	[QUOTA_IMAGES] = {"images", UINT64_C(1) << 50, AT(quota_images_bytes),
                          "delete a template with an imported image"},
	[QUOTA_SECRETS] = {"secrets", 65536, AT(quota_secrets), "delete a secret"},
};
static_assert(ARRAY_SIZE(rows) == QUOTA_COUNT, "every quota has its row");

const char *quota_name(enum quota quota)
{
	return rows[quota].name;
}

uint64_t quota_max(enum quota quota)
{
	return rows[quota].max;
}

bool quota_is_size(enum quota quota)
{
	return quota == QUOTA_MEMORY || quota == QUOTA_IMAGES;
}

static uint64_t burst_of(uint64_t rate)
{
	uint64_t burst = BURST_SECONDS * rate;

	return burst < rows[QUOTA_BURST].max ? burst : rows[QUOTA_BURST].max;
}

static void apply_limits(const struct tenants *all, struct tenant *t)
{
	bool is_default = str_equal(t->name, TENANT_DEFAULT);

	for (int i = 0; i < QUOTA_COUNT; i++) {
		const char *setting = (const char *)all->config + rows[i].setting;
		uint64_t fallback = is_default ? 0 : *(const uint64_t *)setting;

		t->limits[i] = t->quotas[i] == QUOTA_UNSET ? fallback : t->quotas[i];
	}
	/* A burst belongs to a rate: that of the settings to theirs. */
	if (t->limits[QUOTA_BURST] == 0 ||
	    (t->quotas[QUOTA_BURST] == QUOTA_UNSET && t->quotas[QUOTA_REQUESTS] != QUOTA_UNSET))
		t->limits[QUOTA_BURST] = burst_of(t->limits[QUOTA_REQUESTS]);
	t->queue.running_max = t->limits[QUOTA_EXECUTIONS];
	t->queue.memory_max = t->limits[QUOTA_MEMORY];
}

void tenants_set(struct tenants *all, struct tenant *t, const struct tenant_settings *settings,
                 struct scheduler *s)
{
	/* Already checked; a name that is too long names no policy. */
	(void)!str_copy(t->policy, sizeof(t->policy), settings->policy ? settings->policy : "");
	for (int i = 0; i < QUOTA_COUNT; i++)
		t->quotas[i] = settings->quotas[i];
	t->updated_ms = clock_real_ms();
	apply_limits(all, t);
	if (s)
		scheduler_update(s, &t->queue, clock_us());
}

struct tenant *tenants_add(struct tenants *all, const struct tenant_settings *settings,
                           struct error *err)
{
	struct tenant *t;
	int r = 0;

	if (!settings->name || !id_is_valid(settings->name, TENANT_NAME_MAX))
		r = error_field(err, "name", "must be 1 to %d of A-Z a-z 0-9 _ -", TENANT_NAME_MAX);
	else if (tenants_find(all, settings->name))
		r = error_set(err, ERR_CONFLICT, 0, "tenant %s already exists", settings->name);
	else if (tenants_count(all) >= TENANT_COUNT_MAX)
		r = error_set(err, ERR_BUSY, 0, "there are already %d tenants: delete one",
		              TENANT_COUNT_MAX);
	if (r < 0)
		return NULL;
	t = NEW(struct tenant);
	(void)!str_copy(t->name, sizeof(t->name), settings->name); /* checked above */
	scheduler_queue_init(&t->queue);
	tenants_set(all, t, settings, NULL);
	t->created_ms = t->updated_ms;
	list_append(&all->all, &t->node);
	(void)!map_put(all->by_name, t->name, t); /* checked above */
	return t;
}

int tenants_check_remove(const struct tenant *t, struct error *err)
{
	if (str_equal(t->name, TENANT_DEFAULT))
		return error_set(err, ERR_CONFLICT, 0, "tenant %s cannot be deleted", t->name);
	if (t->holds > 0)
		return error_set(
			err, ERR_CONFLICT, 0,
			"tenant %s still has %zu sessions, executions, templates and images, "
			"ended ones included; delete them first",
			t->name, t->holds);
	return 0;
}

int tenants_remove(struct tenants *all, struct tenant *t, struct error *err)
{
	if (tenants_check_remove(t, err) < 0)
		return -1;
	(void)map_remove(all->by_name, t->name);
	list_remove(&t->node);
	free(t);
	return 0;
}

struct tenants *tenants_new(const struct config *config)
{
	struct tenant_settings settings = {.name = TENANT_DEFAULT};
	struct tenants *all = NEW(struct tenants);
	struct error err = {0};
	const struct tenant *t;

	all->config = config;
	all->by_name = map_new();
	list_init(&all->all);
	for (int i = 0; i < QUOTA_COUNT; i++)
		settings.quotas[i] = QUOTA_UNSET;
	t = tenants_add(all, &settings, &err);
	assert(t);
	(void)t;
	return all;
}

void tenants_free(struct tenants *all)
{
	struct tenant *t;

	if (!all)
		return;
	LIST_FOREACH (t, &all->all, struct tenant, node)
		free(t);
	map_free(all->by_name);
	free(all);
}

struct tenant *tenants_find(const struct tenants *all, const char *name)
{
	return map_get(all->by_name, name);
}

struct tenant *tenants_at(const struct tenants *all, size_t index)
{
	struct tenant *t;

	LIST_FOREACH (t, &all->all, struct tenant, node)
		if (index-- == 0)
			return t;
	return NULL;
}

struct tenant *tenants_next(const struct tenants *all, const struct tenant *t)
{
	struct list *next = t->node.next;

	return next == &all->all ? NULL : LIST_ENTRY(next, struct tenant, node);
}

size_t tenants_count(const struct tenants *all)
{
	return map_count(all->by_name);
}

void tenant_hold(struct tenant *t)
{
	if (t)
		t->holds++;
}

void tenant_release(struct tenant *t)
{
	if (!t)
		return;
	assert(t->holds > 0);
	t->holds--;
}

static int refuse_quota(const struct tenant *t, enum quota quota, struct error *err)
{
	(void)error_set(err, ERR_QUOTA, 0, "quota of tenant %s exceeded: %llu; %s", t->name,
	                (unsigned long long)t->limits[quota], rows[quota].remedy);
	(void)!str_format(err->field, sizeof(err->field), "quota.%s", rows[quota].name);
	return -1;
}

int tenant_take_request(struct tenant *t, uint64_t now_us, uint64_t *ret_wait_us, struct error *err)
{
	struct bucket_rate rate;

	if (!t || t->limits[QUOTA_REQUESTS] == 0)
		return 0;
	rate = (struct bucket_rate){t->limits[QUOTA_REQUESTS], t->limits[QUOTA_BURST]};
	*ret_wait_us = bucket_take(&t->requests, &rate, now_us);
	if (*ret_wait_us == 0)
		return 0;
	(void)refuse_quota(t, QUOTA_REQUESTS, err);
	return error_retry(err, *ret_wait_us);
}

static int take_count(const struct tenant *t, enum quota quota, size_t *count, struct error *err)
{
	if (err && t->limits[quota] && *count >= t->limits[quota])
		return refuse_quota(t, quota, err);
	++*count;
	return 0;
}

int tenant_take_session(struct tenant *t, struct error *err)
{
	return t ? take_count(t, QUOTA_SESSIONS, &t->sessions, err) : 0;
}

static void drop_count(size_t *count)
{
	assert(*count > 0);
	--*count;
}

void tenant_drop_session(struct tenant *t)
{
	if (t)
		drop_count(&t->sessions);
}

int tenant_take_queued(struct tenant *t, const struct scheduler *s, struct error *err)
{
	if (!t || take_count(t, QUOTA_QUEUED, &t->queued, err) == 0)
		return 0;
	return error_retry(err, scheduler_retry_after(s) * USEC_PER_SEC);
}

void tenant_drop_queued(struct tenant *t)
{
	if (t)
		drop_count(&t->queued);
}

static bool has_memory(const struct tenant *t, uint64_t used, uint64_t bytes)
{
	uint64_t max = t->limits[QUOTA_MEMORY];

	return max == 0 || (used <= max && bytes <= max - used);
}

/* Executions return their memory soon; sessions do not. */
int tenant_check_memory(const struct tenant *t, uint64_t bytes, struct error *err)
{
	if (!t || has_memory(t, t->held_bytes, bytes))
		return 0;
	return refuse_quota(t, QUOTA_MEMORY, err);
}

void tenant_add_box(struct tenant *t)
{
	if (t)
		t->boxes++;
}

void tenant_drop_box(struct tenant *t)
{
	if (!t)
		return;
	assert(t->boxes > 0);
	t->boxes--;
}

int tenant_take_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, struct error *err)
{
	if (!t)
		return 0;
	if (err && !has_memory(t, t->queue.memory_bytes, bytes))
		return refuse_quota(t, QUOTA_MEMORY, err);
	tenant_add_box(t);
	t->held_bytes += bytes;
	scheduler_hold(s, &t->queue, bytes);
	return 0;
}

void tenant_drop_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, uint64_t now_us)
{
	if (!t)
		return;
	tenant_drop_box(t);
	t->held_bytes -= bytes;
	scheduler_release(s, &t->queue, bytes, now_us);
}

int tenant_take_template(struct tenant *t, struct error *err)
{
	return t ? take_count(t, QUOTA_TEMPLATES, &t->templates, err) : 0;
}

void tenant_drop_template(struct tenant *t)
{
	if (t)
		drop_count(&t->templates);
}

uint64_t tenant_image_room(const struct tenant *t)
{
	uint64_t max = t ? t->limits[QUOTA_IMAGES] : 0;

	if (max == 0)
		return UINT64_MAX;
	return t->image_bytes < max ? max - t->image_bytes : 0;
}

int tenant_refuse_image(const struct tenant *t, struct error *err)
{
	return refuse_quota(t, QUOTA_IMAGES, err);
}

int tenant_take_secret(struct tenant *t, struct error *err)
{
	return t ? take_count(t, QUOTA_SECRETS, &t->secrets, err) : 0;
}

void tenant_drop_secret(struct tenant *t)
{
	if (t)
		drop_count(&t->secrets);
}

int tenant_take_image(struct tenant *t, uint64_t bytes, struct error *err)
{
	if (!t)
		return 0;
	if (err && bytes > tenant_image_room(t))
		return refuse_quota(t, QUOTA_IMAGES, err);
	t->image_bytes += bytes;
	return 0;
}

void tenant_drop_image(struct tenant *t, uint64_t bytes)
{
	if (!t)
		return;
	assert(t->image_bytes >= bytes);
	t->image_bytes -= bytes;
}
