/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: from a request to its handler: who may ask (Host, Origin), what is asked (path, method), in
 * what form (media type, size). Decides nothing else. Owned by main; one per daemon.
 */

#include "base/attr.h"
#include "base/error.h"
#include "http/server.h"
#include <stdbool.h>
#include <stddef.h>

struct config;
struct run_service;
struct run_records;
struct imports;
struct identity;
struct loop;
struct audit;
struct metrics;
struct packages;
struct principal;
struct router;
struct route;
struct runners;
struct session_service;
struct store;
struct templates;
struct tenants;

/* All borrowed: they outlive it. */
struct router_config {
	const struct config *config;
	struct loop *loop;
	struct run_service *runs;
	struct session_service *sessions;
	struct run_records *executions;
	struct metrics *metrics;         /* NULL: nobody counts */
	struct audit *audit;             /* NULL: nobody keeps a log */
	const struct packages *packages; /* NULL: none are known */
	struct templates *templates;
	const struct runners *runners;
	struct store *store;       /* NULL: nothing is kept but in memory */
	struct identity *identity; /* NULL: nobody is asked who he is */
	struct tenants *tenants;   /* NULL: nobody has quotas */
	struct imports *imports;
};

/** router_check - whether the settings name only what there is; ERR_CONFIG. */
int router_check(const struct config *config, struct error *err) attr_must_check;
void router_free(struct router *r);
struct router *router_new(const struct router_config *config) attr_owned(router_free);
struct http_handlers router_handlers(struct router *r);
/** router_set_unready - from now on /readyz says 503 and @reason (a literal). */
void router_set_unready(struct router *r, const char *reason);
/** router_policies_changed - they were read again: agents that watch them are told. */
void router_policies_changed(struct router *r);

#define ROUTER_ALLOW_LEN 64
#define ROUTER_ID_LEN    65 /* longer ones name nothing */

/**
 * router_find - the row for @method and @path. HEAD is served where GET is. With ERR_BAD_METHOD,
 * @ret_allow has the methods of the path. Pure.
 */
int router_find(const char *method, const char *path, const struct route **ret_route,
                char ret_allow[ROUTER_ALLOW_LEN], struct error *err) attr_must_check;
/* What a path says beyond its row, and who asks. */
struct route_args {
	char id[ROUTER_ID_LEN];            /* for {id}; "" where nothing could have it */
	const char *rest;                  /* for {path...}; of the request's path; never NULL */
	const struct principal *principal; /* who asks; set by whoever has checked that */
};
/**
 * router_match - what stands in @path for the {id} and the closing {path...} of @pattern. An id
 * that is not well-formed is like one that nobody has: "", so that both get the same answer; a rest
 * may be anything, "" included, and is for its handler to check. Return: whether they match. Pure.
 */
bool router_match(const char *pattern, const char *path, struct route_args *ret_args);
/**
 * router_check_source - a web page must not reach a local daemon: neither under a name of its own
 * that resolves to this host (Host), nor from a page of somebody else (Origin). @host or @origin
 * NULL: not sent. Pure.
 */
int router_check_source(const struct config *config, bool is_unix, const char *host,
                        const char *origin, struct error *err) attr_must_check;
/** router_is_json - whether the media type @value is JSON in UTF-8; NULL: none sent. Pure. */
bool router_is_json(const char *value);
