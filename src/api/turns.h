/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: tenants take turns in the loop. While two tenants send requests, each gets one request
 * handled per round of the loop; its others wait for the next rounds. So a tenant with many
 * connections does not delay a tenant with one. A tenant that is alone never waits.
 */

#include "base/attr.h"
#include <stdint.h>

struct http_request;
struct loop;
struct turns;

struct turns_config {
	struct loop *loop; /* borrowed */
	void (*handle)(void *ctx, struct http_request *req);
	void *ctx;
};

/** turns_free - waiting requests must be gone: the server was freed first. */
void turns_free(struct turns *t);
struct turns *turns_new(const struct turns_config *config) attr_owned(turns_free);
/** turns_enter - handle @req now, or in a later round unless its client leaves. */
void turns_enter(struct turns *t, struct http_request *req, const char *tenant, uint64_t now_us);
