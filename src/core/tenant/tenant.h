/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tenants: ownership and quotas. A tenant is its name, the name of its policy, its quotas,
 * and its current use. Every count is taken when an object begins and returned when it ends,
 * however it ends: an object that points to a tenant holds it (tenant_hold), and a held tenant
 * cannot be removed.
 *
 * Use is not persisted: after a restart it is counted again from the living objects.
 *
 * A quota of 0 means unlimited: only the daemon's own bounds apply. Quotas that are not set for a
 * tenant come from the settings quota.*; for TENANT_DEFAULT, whose users are the daemon's own,
 * they are 0.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/tenant/bucket.h"
#include "core/tenant/principal.h"
#include "core/tenant/scheduler.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct tenants;

enum quota {
	QUOTA_SESSIONS,   /* living */
	QUOTA_EXECUTIONS, /* running at the same time; more wait */
	QUOTA_QUEUED,     /* waiting executions; more are rejected */
	QUOTA_MEMORY,     /* bytes: the limits of its boxes, added up */
	QUOTA_REQUESTS,   /* per second, on average */
	QUOTA_BURST,      /* requests at once */
	QUOTA_TEMPLATES,  /* without the built-in ones */
	QUOTA_IMAGES,     /* bytes: its imported images on disk */
	QUOTA_COUNT
};

#define QUOTA_UNSET      UINT64_MAX /* use the setting */
#define TENANT_COUNT_MAX 4096

struct tenant {
	struct list node; /* of all tenants, oldest first */
	char name[TENANT_NAME_MAX + 1];
	char policy[TENANT_NAME_MAX + 1]; /* "": the daemon's default */
	uint64_t created_ms, updated_ms;  /* wall clock */
	uint64_t quotas[QUOTA_COUNT];     /* as set, or QUOTA_UNSET */
	uint64_t limits[QUOTA_COUNT];     /* in effect; 0: unlimited */
	/* current use */
	struct scheduler_queue queue; /* its executions, and their memory */
	uint64_t held_bytes;          /* part of that memory: boxes without an execution */
	size_t sessions, queued;
	size_t boxes;        /* existing or requested, until they are gone */
	size_t queued_bytes; /* requests of its sessions' queued executions */
	size_t templates;
	uint64_t image_bytes;
	size_t holds;
	struct bucket requests;
};

/* The changeable part. */
struct tenant_settings {
	const char *name;
	const char *policy;
	uint64_t quotas[QUOTA_COUNT];
};

/* A quota's name in requests, errors and lists, and its maximum. */
const char *quota_name(enum quota quota);
uint64_t quota_max(enum quota quota);
/** quota_is_size - counted in bytes, printed as a size. */
bool quota_is_size(enum quota quota);

void tenants_free(struct tenants *all);
/** tenants_new - contains TENANT_DEFAULT. @config is borrowed. */
struct tenants *tenants_new(const struct config *config) attr_owned(tenants_free);
struct tenant *tenants_find(const struct tenants *all, const char *name);
/** tenants_at - oldest first; NULL past the end. O(index). */
struct tenant *tenants_at(const struct tenants *all, size_t index);
/** tenants_next - the one after @t, or NULL. */
struct tenant *tenants_next(const struct tenants *all, const struct tenant *t);
size_t tenants_count(const struct tenants *all);
/** tenants_add - ERR_CONFLICT if the name is taken, ERR_INVALID if it is not a valid name. */
struct tenant *tenants_add(struct tenants *all, const struct tenant_settings *settings,
                           struct error *err);
/** tenants_set - change policy and quotas; @s (may be NULL) admits entries that now fit. */
void tenants_set(struct tenants *all, struct tenant *t, const struct tenant_settings *settings,
                 struct scheduler *s);
/** tenants_check_remove - ERR_CONFLICT while it is held, or for TENANT_DEFAULT. */
int tenants_check_remove(const struct tenant *t, struct error *err) attr_must_check;
/** tenants_remove - after tenants_check_remove. */
int tenants_remove(struct tenants *all, struct tenant *t, struct error *err) attr_must_check;

/* Counting. A NULL tenant has no bounds. A refusal is ERR_QUOTA with the quota as field; with
 * @err NULL nothing is refused, for objects from before a restart. */

void tenant_hold(struct tenant *t);
void tenant_release(struct tenant *t);
/** tenant_take_request - with ERR_QUOTA, *ret_wait_us is when to retry. */
int tenant_take_request(struct tenant *t, uint64_t now_us, uint64_t *ret_wait_us,
                        struct error *err) attr_must_check;
/** tenant_take_session - count a living session; undone by tenant_drop_session. */
int tenant_take_session(struct tenant *t, struct error *err);
void tenant_drop_session(struct tenant *t);
/** tenant_take_queued - count a waiting execution; undone by tenant_drop_queued. */
int tenant_take_queued(struct tenant *t, struct error *err) attr_must_check;
void tenant_drop_queued(struct tenant *t);
/** tenant_check_memory - whether a box of @bytes fits, now or after running executions end. */
int tenant_check_memory(const struct tenant *t, uint64_t bytes, struct error *err) attr_must_check;
/** tenant_add_box - of an execution: the scheduler counts its memory. */
void tenant_add_box(struct tenant *t);
void tenant_drop_box(struct tenant *t);
/** tenant_take_memory - for a box without an execution; undone by tenant_drop_memory. */
int tenant_take_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, struct error *err);
void tenant_drop_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, uint64_t now_us);
/** tenant_take_template - undone by tenant_drop_template. */
int tenant_take_template(struct tenant *t, struct error *err);
void tenant_drop_template(struct tenant *t);
/** tenant_take_image - @bytes on disk; undone by tenant_drop_image. */
int tenant_take_image(struct tenant *t, uint64_t bytes, struct error *err);
void tenant_drop_image(struct tenant *t, uint64_t bytes);
/** tenant_image_room - bytes an image may still have; UINT64_MAX: unlimited. */
uint64_t tenant_image_room(const struct tenant *t);
/** tenant_refuse_image - ERR_QUOTA for an image larger than that. Return: always -1. */
int tenant_refuse_image(const struct tenant *t, struct error *err);
