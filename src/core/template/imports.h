/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: imports images as templates. Only millibox-import, started with the daemon, parses the
 * archive; the daemon reads its short answer. One import: imports_begin, import_write...,
 * import_end, then exactly one of on_done and on_failed, from the loop or from import_write; or
 * import_cancel, and no event. Its tenant can query its progress.
 *
 * Beyond the bounds (imports.max, imports.max_per_tenant) an import waits and accepts no byte yet.
 * Tenants take turns. If imports.max_queued wait, a tenant that has its equal share of them is
 * rejected.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct image;
struct import;
struct imports;
struct loop;
struct metrics;
struct template;
struct templates;
struct tenants;

struct imports_config {
	struct loop *loop;
	struct templates *templates;
	const struct config *config;
	const struct tenants *tenants; /* NULL: quotas off */
	struct metrics *metrics;       /* NULL: metrics off */
	const char *roots;             /* of imported roots */
	int sock;                      /* of millibox-import, owned; -1: not started */
};

struct import_events {
	void *ctx;
	void (*on_room)(void *ctx); /* to write more */
	void (*on_done)(void *ctx, struct template *t);
	void (*on_failed)(void *ctx, const struct error *err);
	/* Instead of on_done, of a tree. A reference. @config: JSON. */
	void (*on_tree)(void *ctx, struct image *image, const char *config);
};

/* Borrowed. */
struct import_request {
	bool tree; /* one tar becomes a root, without a template; @id is only displayed */
	const char *tenant, *id, *name; /* @name NULL: the id */
	uint64_t length;                /* of the archive; IMPORT_LENGTH_UNKNOWN */
};
#define IMPORT_LENGTH_UNKNOWN UINT64_MAX

enum import_state {
	IMPORT_WAITING,   /* for its turn */
	IMPORT_RECEIVING, /* the archive */
	IMPORT_UNPACKING, /* applying layers */
	IMPORT_STATE_COUNT
};

/* Borrowed until the loop continues. */
struct import_info {
	const char *id, *name; /* of the future template */
	enum import_state state;
	uint64_t received, length; /* archive bytes; @length may be unknown */
	uint64_t layers, layer;    /* total (0: unknown), current */
	uint64_t entries, bytes;   /* of all layers so far */
	uint64_t started_ms, updated_ms;
};
const char *import_state_name(enum import_state state);

/** imports_free - cancels running imports; no callback follows. */
void imports_free(struct imports *all);
struct imports *imports_new(const struct imports_config *config) attr_owned(imports_free);
/** imports_sweep - remove roots without a template or box. Call after sessions are restored. */
void imports_sweep(struct imports *all);
/** imports_count - waiting and running. */
size_t imports_count(const struct imports *all);
/** imports_measure - a metrics source; @ctx: the imports. */
void imports_measure(void *ctx, struct metrics *m);
/** imports_at - @tenant's, oldest first; false past the end. */
bool imports_at(const struct imports *all, const char *tenant, size_t index,
                struct import_info *ret_info);
/** imports_find - by the future template's id. */
bool imports_find(const struct imports *all, const char *tenant, const char *id,
                  struct import_info *ret_info);

int imports_begin(struct imports *all, const struct import_request *request,
                  const struct import_events *events, struct import **ret_import,
                  struct error *err) attr_must_check;
/** import_write - Return: bytes accepted; if not all, on_room follows, or on_failed was called. */
size_t import_write(struct import *i, const char *data, size_t len);
void import_end(struct import *i);
void import_cancel(struct import *i);
