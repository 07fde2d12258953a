/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tenants: ownership and quotas. Every count is taken when an object begins and returned when
 * it ends. An object that points to a tenant holds it (tenant_hold); a held tenant cannot be
 * removed.
 *
 * Use is not persisted: after a restart it is counted from the living objects.
 *
 * Unset quotas come from the settings quota.*; for TENANT_DEFAULT, whose users are the daemon's
 * own, they are 0: unlimited.
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
	QUOTA_EXECUTIONS, /* concurrent; more wait */
	QUOTA_QUEUED,     /* waiting; more are rejected */
	QUOTA_MEMORY,     /* bytes: sum of its boxes' limits */
	QUOTA_REQUESTS,   /* average per second */
	QUOTA_BURST,      /* requests at once */
	QUOTA_TEMPLATES,  /* without the built-in ones */
	QUOTA_IMAGES,     /* bytes on disk */
	QUOTA_SECRETS,
	QUOTA_COUNT
};

#define QUOTA_UNSET      UINT64_MAX /* use the setting */
#define TENANT_COUNT_MAX 4096

struct tenant {
	struct list node; /* oldest first */
	char name[TENANT_NAME_MAX + 1];
	char policy[TENANT_NAME_MAX + 1]; /* "": the daemon's default */
	uint64_t created_ms, updated_ms;  /* wall clock */
	uint64_t quotas[QUOTA_COUNT];     /* as set, or QUOTA_UNSET */
	uint64_t limits[QUOTA_COUNT];     /* in effect; 0: unlimited */
	/* current use */
	struct scheduler_queue queue; /* executions and all memory */
	uint64_t held_bytes;          /* of that: boxes without an execution */
	size_t sessions, queued;
	size_t boxes;        /* existing or requested */
	size_t queued_bytes; /* of its sessions' queued executions */
	size_t shown_bytes;  /* output of its runs beside queues, while they run: run_beside.c */
	size_t templates, secrets;
	uint64_t image_bytes;
	size_t holds;
	uint64_t seen_round, seen_bytes; /* memory of its boxes, for memory_guard.c */
	struct bucket requests;
};

struct tenant_settings {
	const char *name;
	const char *policy;
	uint64_t quotas[QUOTA_COUNT];
};

const char *quota_name(enum quota quota);
uint64_t quota_max(enum quota quota);
/** quota_is_size - counted in bytes. */
bool quota_is_size(enum quota quota);

void tenants_free(struct tenants *all);
/** tenants_new - with TENANT_DEFAULT. @config is borrowed. */
struct tenants *tenants_new(const struct config *config) attr_owned(tenants_free);
struct tenant *tenants_find(const struct tenants *all, const char *name);
/** tenants_at - oldest first; NULL past the end. O(index). */
struct tenant *tenants_at(const struct tenants *all, size_t index);
/** tenants_next - may be NULL. */
struct tenant *tenants_next(const struct tenants *all, const struct tenant *t);
size_t tenants_count(const struct tenants *all);
/** tenants_add - ERR_CONFLICT: the name is taken; ERR_INVALID: bad name. */
struct tenant *tenants_add(struct tenants *all, const struct tenant_settings *settings,
                           struct error *err);
/** tenants_set - change policy and quotas; @s (may be NULL) admits entries that now fit. */
void tenants_set(struct tenants *all, struct tenant *t, const struct tenant_settings *settings,
                 struct scheduler *s);
/** tenants_check_remove - ERR_CONFLICT while held, or for TENANT_DEFAULT. */
int tenants_check_remove(const struct tenant *t, struct error *err) attr_must_check;
/** tenants_remove - after tenants_check_remove. */
int tenants_remove(struct tenants *all, struct tenant *t, struct error *err) attr_must_check;

/* Counting. A NULL tenant has no bounds. A refusal is ERR_QUOTA with the quota as field; with @err
 * NULL nothing is refused, for objects from before a restart. Only what becomes free by itself is
 * worth a repetition (error_retry): requests and places in the queue. */

void tenant_hold(struct tenant *t);
void tenant_release(struct tenant *t);
/** tenant_take_request - with ERR_QUOTA, *ret_wait_us is when to retry. */
int tenant_take_request(struct tenant *t, uint64_t now_us, uint64_t *ret_wait_us,
                        struct error *err) attr_must_check;
int tenant_take_session(struct tenant *t, struct error *err);
void tenant_drop_session(struct tenant *t);
/** tenant_take_queued - @s: which estimates when there is room. */
int tenant_take_queued(struct tenant *t, const struct scheduler *s,
                       struct error *err) attr_must_check;
void tenant_drop_queued(struct tenant *t);
/**
 * tenant_check_memory - whether a box of @bytes fits, at the latest after running executions end.
 */
int tenant_check_memory(const struct tenant *t, uint64_t bytes, struct error *err) attr_must_check;
/** tenant_add_box - of an execution: the scheduler counts its memory. */
void tenant_add_box(struct tenant *t);
void tenant_drop_box(struct tenant *t);
/** tenant_take_memory - for a box without an execution. */
int tenant_take_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, struct error *err);
void tenant_drop_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, uint64_t now_us);
int tenant_take_template(struct tenant *t, struct error *err);
void tenant_drop_template(struct tenant *t);
int tenant_take_secret(struct tenant *t, struct error *err);
void tenant_drop_secret(struct tenant *t);
/** tenant_take_image - @bytes on disk. */
int tenant_take_image(struct tenant *t, uint64_t bytes, struct error *err);
void tenant_drop_image(struct tenant *t, uint64_t bytes);
/** tenant_image_room - bytes left for images; UINT64_MAX: unlimited. */
uint64_t tenant_image_room(const struct tenant *t);
/** tenant_refuse_image - set ERR_QUOTA. Return: -1. */
int tenant_refuse_image(const struct tenant *t, struct error *err);
