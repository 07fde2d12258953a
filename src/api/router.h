/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: from a request to its handler: checks Host and Origin, finds the route, authenticates the
 * caller, checks media type and size.
 */

#include "base/attr.h"
#include "base/error.h"
#include "http/server.h"
#include <stdbool.h>

struct config;
struct dialect;
struct run_service;
struct run_records;
struct imports;
struct installs;
struct identity;
struct loop;
struct audit;
struct catalog;
struct metrics;
struct outputs;
struct packages;
struct router;
struct runners;
struct secrets;
struct session_service;
struct store;
struct templates;
struct tenants;

/* All borrowed: they outlive the router. */
struct router_config {
	const struct dialect *const *dialects; /* NULL-terminated; earlier ones win */
	const struct config *config;
	struct loop *loop;
	struct run_service *runs;
	struct session_service *sessions;
	struct run_records *executions;
	struct outputs *outputs;   /* long output of one-shot executions */
	struct metrics *metrics;   /* NULL: metrics off */
	struct audit *audit;       /* NULL: audit off */
	struct packages *packages; /* NULL: none are known */
	struct templates *templates;
	const struct runners *runners;
	struct store *store;       /* NULL: nothing is persisted */
	struct identity *identity; /* NULL: authentication off */
	struct tenants *tenants;   /* NULL: quotas off */
	struct imports *imports;
	struct secrets *secrets;       /* NULL: none can be set */
	const struct catalog *catalog; /* outside MCP servers; NULL: none */
	struct installs *installs;
};

void router_free(struct router *r);
struct router *router_new(const struct router_config *config) attr_owned(router_free);
struct http_handlers router_handlers(struct router *r);
/** router_set_unready - /readyz answers 503 with @reason (a literal) from now on. */
void router_set_unready(struct router *r, const char *reason);
/** router_policies_changed - they were reloaded. */
void router_policies_changed(struct router *r);
/** router_set_server - borrowed: its requests end when their key expires. */
void router_set_server(struct router *r, struct http_server *server);
/** router_keys_added - one of them may expire. */
void router_keys_added(struct router *r);
/** router_keys_changed - ends the requests of keys that are no longer valid; not @req itself. */
void router_keys_changed(struct router *r, struct http_request *req);

/**
 * router_check_source - a web page must not reach a local daemon, neither by a name that resolves
 * to this host (Host), nor from another site (Origin; @site is Sec-Fetch-Site). NULL: not sent.
 * @any_host: Host says nothing, and no origin is this daemon's own. Pure.
 */
int router_check_source(const struct config *config, bool any_host, const char *host,
                        const char *origin, const char *site, struct error *err) attr_must_check;
/** router_is_json - whether the media type @value is JSON in UTF-8; NULL: none sent. Pure. */
bool router_is_json(const char *value);
