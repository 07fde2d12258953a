/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: names become addresses, outside of every box. An adapter of c-ares; the only file that
 * includes ares.h.
 */

#include "base/attr.h"
#include "base/error.h"
#include <netinet/in.h>
#include <stddef.h>

struct loop;
struct lookup;
struct resolver;

/* More addresses of a name than this are not looked at. */
#define RESOLVE_MAX 16

void resolver_free(struct resolver *r);
/** resolver_new - @servers: "address[:port],..."; NULL: those of /etc/resolv.conf. */
struct resolver *resolver_new(struct loop *loop, const char *servers, struct error *err)
	attr_owned(resolver_free);

/** lookup_fn - @count: 0 with @reason: why there is none. Never called inside lookup_start. */
typedef void lookup_fn(void *ctx, const struct in6_addr *addresses, size_t count,
                       const char *reason);
/** lookup_start - Return: NULL if too many are under way. @fn is called once, unless cancelled. */
struct lookup *lookup_start(struct resolver *r, const char *name, lookup_fn *fn, void *ctx);
void lookup_cancel(struct lookup *l);
