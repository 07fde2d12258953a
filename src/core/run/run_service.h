/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what all runs share: the driver, the scheduler, the pools of boxes made ahead, the policy
 * rules. Also ends all runs when the daemon stops.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit;
struct box_spec;
struct config;
struct driver;
struct image;
struct language_checks;
struct loop;
struct metrics;
struct policies;
struct policy;
struct policy_explanation;
struct policy_stack;
struct pools;
struct run_request;
struct run_service;
struct runner;
struct runners;
struct scheduler;
struct seal_key;
struct template;
struct tenant;
struct tenants;
struct toolchains;

/* All borrowed; must outlive the service. */
struct run_service_config {
	const struct config *config;
	struct driver *driver;
	struct runners *runners;
	const struct policies *policies; /* NULL: settings alone decide */
	const struct secrets *secrets;   /* NULL: there are none */
	struct toolchains *toolchains;   /* NULL: the files of a root decide about languages */
	struct loop *loop;
	struct metrics *metrics;     /* NULL: metrics off */
	struct audit *audit;         /* NULL: audit off */
	struct tenants *tenants;     /* NULL: no quotas */
	const struct seal_key *seal; /* NULL: receipts cannot be signed */
	uint64_t build_timeout_us;   /* bounds the start of box and program; 0: 15 s */
};

/** run_service_free - after a drain; otherwise runs end without a callback. */
void run_service_free(struct run_service *s);
struct run_service *run_service_new(const struct run_service_config *config)
	attr_owned(run_service_free);

/** run_service_explain - what run_start would decide, and by which rules. */
void run_service_explain(const struct run_service *s, const struct run_request *request,
                         struct policy_explanation *ret_explanation);
/** run_service_seal - NULL: receipts cannot be signed. */
const struct seal_key *run_service_seal(const struct run_service *s);
/** run_service_driver - borrowed. */
const struct driver *run_service_driver(const struct run_service *s);
unsigned run_service_cores(const struct run_service *s);
struct pools *run_service_pools(struct run_service *s);
struct language_checks *run_service_language_checks(struct run_service *s);
/** run_service_toolchains - may be NULL. */
const struct toolchains *run_service_toolchains(const struct run_service *s);
/* Return: the tree of @r's library for compilers in the root of @t (NULL: the host's), borrowed;
 * NULL: none, or not yet. */
typedef struct image *run_library_fn(void *ctx, struct template *t, const struct runner *r);
/** run_service_set_library - who makes the libraries of compilers; @fn NULL: nobody. */
void run_service_set_library(struct run_service *s, run_library_fn *fn, void *ctx);
/** run_service_library - mount the library of @r in @spec, a box in which its compiler will run,
 * unless packages are there. @r may be NULL. Return: a reference for the life of that box; NULL:
 * none. */
struct image *run_service_library(struct run_service *s, struct template *t, const struct runner *r,
                                  struct box_spec *spec);
/** run_service_prepare - keep boxes ready for each language with the default tenant's defaults.
 * Call it again after policies or templates change: old boxes end. */
void run_service_prepare(struct run_service *s);
struct scheduler *run_service_scheduler(struct run_service *s);
/** run_service_memory_low - available memory below which boxes are ended, see memory_guard.h. */
uint64_t run_service_memory_low(const struct run_service *s);

/** run_service_tenant - @name NULL: TENANT_DEFAULT. Return: NULL if there are no tenants. */
struct tenant *run_service_tenant(const struct run_service *s, const char *name);
/** run_service_choose - policies for @tenant and a request that names @asked; borrowed until the
 * next reload. */
int run_service_choose(const struct run_service *s, const struct tenant *tenant, const char *asked,
                       struct policy_stack *ret_stack, struct error *err) attr_must_check;
/** run_service_policies - NULL: settings alone decide. */
const struct policies *run_service_policies(const struct run_service *s);
/** run_service_policy_of - valid until the next reload; NULL: none. */
const struct policy *run_service_policy_of(const struct run_service *s, const char *tenant);

struct run_service_stats {
	size_t running, queued, boxes;
	bool draining;
};
void run_service_stats(const struct run_service *s, struct run_service_stats *ret_stats);
/**
 * run_service_drain - reject new runs; call @on_drained, from the loop, when no run and no box is
 * left. Runs may end by themselves within the drain time-out; then, or with @at_once, or at the
 * second call, they are aborted. The last call's callback counts.
 */
void run_service_drain(struct run_service *s, bool at_once, void (*on_drained)(void *ctx),
                       void *ctx);
