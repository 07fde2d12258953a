/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/artifacts.h"

#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"

#define NSEC_PER_MSEC 1000000
#define TICK_NS       (20ULL * NSEC_PER_MSEC) /* longer than any kernel's tick */

void artifacts_done(struct artifacts *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->list[i].path);
	free(a->list);
	*a = (struct artifacts){0};
}

void given_add(struct given_files *given, const char *path, const void *data, size_t len)
{
	struct given_file *one;

	given->list = xrealloc_array(given->list, given->count + 1, sizeof(*given->list));
	one = &given->list[given->count++];
	*one = (struct given_file){.path = xstrdup(path), .size = len};
	one->hashed = len <= given->budget;
	if (!one->hashed)
		return;
	given->budget -= len;
	static_assert(sizeof(one->sha256) == crypto_hash_sha256_BYTES, "it fits");
	(void)crypto_hash_sha256(one->sha256, data, len); /* cannot fail */
}

void given_done(struct given_files *given)
{
	for (size_t i = 0; i < given->count; i++)
		free(given->list[i].path);
	free(given->list);
	*given = (struct given_files){0};
}

struct artifact *artifacts_add(struct artifacts *a, const char *path)
{
	struct artifact *one;

	if (a->count == ARTIFACTS_MAX) {
		a->truncated = true;
		return NULL;
	}
	a->list = xrealloc_array(a->list, a->count + 1, sizeof(*a->list));
	one = &a->list[a->count++];
	*one = (struct artifact){.path = utf8_sanitize(path, strlen(path), &(size_t){0})};
	return one;
}

void artifacts_copy(const struct artifacts *from, struct artifacts *ret_to)
{
	*ret_to = (struct artifacts){.truncated = from->truncated};
	for (size_t i = 0; i < from->count; i++) {
		struct artifact *one = artifacts_add(ret_to, from->list[i].path);
		char *path = one->path;

		*one = from->list[i];
		one->path = path;
	}
}

/* A change within one clock tick may not show in the times; it shows in the content. */
static bool is_same(const struct artifact *one, const struct box_file_entry *entry)
{
	if (one->inode != entry->inode || one->ctime_ns != entry->ctime_ns ||
	    one->size != entry->size)
		return false;
	return !one->hashed || !entry->sha256 ||
	       memcmp(one->sha256, entry->sha256, sizeof(one->sha256)) == 0;
}

static bool was_seen(const struct artifacts *seen, const struct box_file_entry *entry)
{
	for (size_t i = 0; seen && i < seen->count; i++)
		if (is_same(&seen->list[i], entry))
			return true;
	return false;
}

/* By content; a file too large to hash, by its time, which ticks slowly. */
static bool is_given(const struct gather *g, const struct given_file *one,
                     const struct box_file_entry *entry)
{
	if (one->size != entry->size || !str_equal(one->path, entry->path))
		return false;
	if (one->hashed && entry->sha256)
		return memcmp(one->sha256, entry->sha256, sizeof(one->sha256)) == 0;
	return entry->ctime_ns < g->since_ns + TICK_NS;
}

static bool was_given(const struct gather *g, const struct box_file_entry *entry)
{
	for (size_t i = 0; g->given && i < g->given->count; i++)
		if (is_given(g, &g->given->list[i], entry))
			return true;
	return false;
}

static void take(struct artifact *one, const struct box_file_entry *entry)
{
	one->inode = entry->inode;
	one->ctime_ns = entry->ctime_ns;
	one->size = entry->size;
	one->changed_ms = entry->mtime_ns / NSEC_PER_MSEC;
	one->hashed = entry->sha256;
	if (entry->sha256)
		memcpy(one->sha256, entry->sha256, sizeof(one->sha256));
}

static void on_entry(void *ctx, const struct box_file_entry *entry)
{
	struct gather *g = ctx;
	struct artifact *now = g->seen ? artifacts_add(&g->now, "") : NULL;
	struct artifact *one;

	if (now)
		take(now, entry);
	if (was_seen(g->seen, entry) || was_given(g, entry))
		return;
	one = artifacts_add(g->into, entry->path);
	if (one)
		take(one, entry);
}

/* The link passes none of these. */
static void on_data(void *ctx, const char *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
}

static void on_room(void *ctx)
{
	(void)ctx;
}

static void settle(struct gather *g)
{
	if (g->seen) {
		artifacts_done(g->seen);
		*g->seen = g->now;
	} else {
		artifacts_done(&g->now);
	}
	g->now = (struct artifacts){0};
}

static void over(struct gather *g, bool whole)
{
	g->file = NULL;
	settle(g);
	g->into->truncated |= !whole;
	g->on_over(g->ctx);
}

static void on_done(void *ctx, const struct box_file_summary *summary)
{
	over(ctx, !summary->truncated);
}

static void on_failed(void *ctx, const struct error *err)
{
	log_debug("the files of an execution were not found: %s", err->msg);
	over(ctx, false);
}

bool gather_start(struct gather *g, struct box *box, uint64_t since_ns)
{
	const struct box_file_events events = {g, on_entry, on_data, on_room, on_done, on_failed};
	const struct box_file_request request = {.op = BOX_FILE_CHANGES,
	                                         .offset = since_ns,
	                                         .length = ARTIFACTS_HASHED,
	                                         .limit = ARTIFACTS_MAX};
	struct error err = {0};

	g->since_ns = since_ns;
	if (box_file_open(box, &request, &events, &g->file, &err) == 0)
		return true;
	g->into->truncated = true;
	return false;
}

void gather_cancel(struct gather *g)
{
	if (!g->file)
		return;
	settle(g);
	g->into->truncated = true;
	box_file_cancel(TAKE_PTR(g->file));
}
