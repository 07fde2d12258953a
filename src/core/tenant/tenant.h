/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tenants: whose things are whose, and how much of everything each may have. A tenant is its
 * name, the name of its policy and its quotas; with it goes what it uses at the moment. Every count
 * is taken when a thing begins and given back when it ends, however it ends: what points to a
 * tenant holds it (tenant_hold), and a tenant that is held is not removed.
 *
 * Nothing of the use is kept on disk: after a restart it is counted again from what lives.
 *
 * A quota of 0 is none: the daemon's own bounds are left. What was not set for a tenant is what the
 * settings quota.* say; for TENANT_DEFAULT, whose users are the daemon's own, it is 0.
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
	QUOTA_SESSIONS,   /* that live */
	QUOTA_EXECUTIONS, /* that run at the same time; more wait */
	QUOTA_QUEUED,     /* executions that wait; more are refused */
	QUOTA_MEMORY,     /* bytes: the limits of its boxes together */
	QUOTA_REQUESTS,   /* per second, on average */
	QUOTA_BURST,      /* requests at once */
	QUOTA_TEMPLATES,  /* of its own */
	QUOTA_IMAGES,     /* bytes: its imported images on the disk, together */
	QUOTA_COUNT
};

#define QUOTA_UNSET      UINT64_MAX /* as the settings say */
#define TENANT_COUNT_MAX 4096

struct tenant {
	struct list node; /* of all, the oldest first */
	char name[TENANT_NAME_MAX + 1];
	char policy[TENANT_NAME_MAX + 1]; /* "": the daemon's default one */
	uint64_t created_ms, updated_ms;  /* wall clock */
	uint64_t quotas[QUOTA_COUNT];     /* as they were set, or QUOTA_UNSET */
	uint64_t limits[QUOTA_COUNT];     /* as they are; 0: none */
	/* what it uses */
	struct scheduler_queue queue; /* executions in it, and memory */
	uint64_t held_bytes;          /* of that memory: of boxes that no execution brought */
	size_t sessions, queued;
	size_t boxes;        /* that are there or wanted, until they are gone */
	size_t queued_bytes; /* what executions of its sessions brought along */
	size_t templates;
	uint64_t image_bytes;
	size_t holds;
	struct bucket requests;
};

/* What can be set. */
struct tenant_settings {
	const char *name;
	const char *policy;
	uint64_t quotas[QUOTA_COUNT];
};

/* The columns of a quota: its name in requests, errors and lists, and the most it may be. */
const char *quota_name(enum quota quota);
uint64_t quota_max(enum quota quota);
/** quota_is_size - it is of bytes, and told as a size. */
bool quota_is_size(enum quota quota);

void tenants_free(struct tenants *all);
/** tenants_new - with TENANT_DEFAULT. @config is borrowed. */
struct tenants *tenants_new(const struct config *config) attr_owned(tenants_free);
struct tenant *tenants_find(const struct tenants *all, const char *name);
/** tenants_at - by age, the oldest first; NULL past the end. O(index). */
struct tenant *tenants_at(const struct tenants *all, size_t index);
/** tenants_next - the one behind @t; NULL: there is none. */
struct tenant *tenants_next(const struct tenants *all, const struct tenant *t);
size_t tenants_count(const struct tenants *all);
/** tenants_add - ERR_CONFLICT where there is one of the name, ERR_INVALID for one that is no name.
 */
struct tenant *tenants_add(struct tenants *all, const struct tenant_settings *settings,
                           struct error *err);
/** tenants_set - policy and quotas from now on; @s, which may be NULL, lets go on who may now. */
void tenants_set(struct tenants *all, struct tenant *t, const struct tenant_settings *settings,
                 struct scheduler *s);
/** tenants_check_remove - ERR_CONFLICT while something is held, or for TENANT_DEFAULT. */
int tenants_check_remove(const struct tenant *t, struct error *err) attr_must_check;
/** tenants_remove - where tenants_check_remove allows it. */
int tenants_remove(struct tenants *all, struct tenant *t, struct error *err) attr_must_check;

/* Counting. A tenant of NULL has no bounds. What refuses says ERR_QUOTA and the quota as field;
 * with
 * @err NULL nothing is refused, for what was there before a restart. */

void tenant_hold(struct tenant *t);
void tenant_release(struct tenant *t);
/** tenant_take_request - with ERR_QUOTA, *ret_wait_us is when to come back. */
int tenant_take_request(struct tenant *t, uint64_t now_us, uint64_t *ret_wait_us,
                        struct error *err) attr_must_check;
/** tenant_take_session - one more that lives; given back by tenant_drop_session. */
int tenant_take_session(struct tenant *t, struct error *err);
void tenant_drop_session(struct tenant *t);
/** tenant_take_queued - one more that waits; given back by tenant_drop_queued. */
int tenant_take_queued(struct tenant *t, struct error *err) attr_must_check;
void tenant_drop_queued(struct tenant *t);
/** tenant_check_memory - whether a box of @bytes could be had, now or when executions have ended.
 */
int tenant_check_memory(const struct tenant *t, uint64_t bytes, struct error *err) attr_must_check;
/** tenant_add_box - of an execution: its memory is the scheduler's to count. */
void tenant_add_box(struct tenant *t);
void tenant_drop_box(struct tenant *t);
/** tenant_take_memory - for a box that no execution brings; given back by tenant_drop_memory. */
int tenant_take_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, struct error *err);
void tenant_drop_memory(struct tenant *t, struct scheduler *s, uint64_t bytes, uint64_t now_us);
/** tenant_take_template - one more of its own; given back by tenant_drop_template. */
int tenant_take_template(struct tenant *t, struct error *err);
void tenant_drop_template(struct tenant *t);
/** tenant_take_image - @bytes more on the disk; given back by tenant_drop_image. */
int tenant_take_image(struct tenant *t, uint64_t bytes, struct error *err);
void tenant_drop_image(struct tenant *t, uint64_t bytes);
/** tenant_image_room - bytes that an image may still have; UINT64_MAX: there is no bound. */
uint64_t tenant_image_room(const struct tenant *t);
/** tenant_refuse_image - ERR_QUOTA for one that has more than that. Return: always -1. */
int tenant_refuse_image(const struct tenant *t, struct error *err);
