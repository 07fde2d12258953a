/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one execution: request -> policy -> scheduler -> box -> outcome. Owned by the exec service
 * from run_start until on_end or on_error was called, exactly one of them, from the loop, never
 * from inside run_start.
 */

#include "base/error.h"
#include "core/request/run_request.h"
#include "core/run/outcome.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct driver;
struct loop;
struct audit;
struct metrics;
struct policies;
struct run;
struct run_service;
struct runners;
struct tenants;
struct template;

struct run_events {
	void *ctx;
	/* The program runs. May be NULL. */
	void (*on_start)(void *ctx, const char *execution_id);
	/* As it comes, already capped; bytes, not text. May be NULL. The outcome has it all again.
	 */
	void (*on_output)(void *ctx, enum output_stream stream, const char *data, size_t len);
	/* The program ran, however it ended. @outcome is borrowed. */
	void (*on_end)(void *ctx, const struct outcome *outcome);
	/* It could not be run. */
	void (*on_error)(void *ctx, const struct error *err);
};

struct run_service_config {
	const struct config *config;     /* borrowed; outlives the service */
	struct driver *driver;           /* borrowed */
	struct runners *runners;         /* borrowed */
	const struct policies *policies; /* borrowed; NULL: the settings alone decide */
	struct loop *loop;
	struct metrics *metrics;   /* borrowed; NULL: nobody counts */
	struct audit *audit;       /* borrowed; NULL: nobody keeps a log */
	struct tenants *tenants;   /* borrowed; NULL: nobody has quotas */
	uint64_t build_timeout_us; /* for box and program to be started; 0: 15 s */
};

/** run_service_free - after a drain; without one, what runs is ended and no callback follows. */
void run_service_free(struct run_service *s);
struct run_service *run_service_new(const struct run_service_config *config)
	attr_owned(run_service_free);

/**
 * run_start - @request is borrowed for the call. Return: 0 and a handle for run_cancel, valid
 * until on_end or on_error was called; or -1: refused, nothing was begun (ERR_INVALID with the
 * field, ERR_BUSY when the queue is full, ERR_UNAVAILABLE while draining ...).
 */
int run_start(struct run_service *s, const struct run_request *request,
              const struct run_events *events, struct run **ret_run,
              struct error *err) attr_must_check;
/** run_stdin - for one whose request left stdin open. While it waits for its turn some is kept. */
int run_stdin(struct run *e, const void *data, size_t len, bool end,
              struct error *err) attr_must_check;
/** run_signal - to the program. ERR_CONFLICT when it does not run. */
int run_signal(struct run *e, int signo, struct error *err) attr_must_check;
/** run_cancel - the caller is gone or has changed its mind; no callback follows. */
void run_cancel(struct run *e);
/** run_abort - as run_cancel, but on_end follows with EXEC_CANCELLED and the output so far. */
void run_abort(struct run *e);

struct policy;
struct policy_explanation;

/** run_service_explain - what @request would get from run_start, and by which rules. Nothing is
 * begun. */
void run_service_explain(const struct run_service *s, const struct run_request *request,
                         struct policy_explanation *ret_explanation);
/** run_service_driver - what makes its boxes; borrowed. */
const struct driver *run_service_driver(const struct run_service *s);
unsigned run_service_cores(const struct run_service *s);
struct pools;
/** run_service_pools - its boxes that were made ahead. */
struct pools *run_service_pools(struct run_service *s);
/** run_service_prepare - from now on some boxes of the usual kinds are made ahead: of each
 * language as the default tenant gets it who asks for nothing special. Again where policies or
 * templates have changed: what was made before goes. */
void run_service_prepare(struct run_service *s);
struct scheduler;
/** run_service_scheduler - for those who change what tenants may have. */
struct scheduler *run_service_scheduler(struct run_service *s);

/** run_service_policies - all there are; NULL: the settings alone decide. */
const struct policies *run_service_policies(const struct run_service *s);
/** run_service_policy_of - that of @tenant, until the next reload; NULL: it is not there. */
const struct policy *run_service_policy_of(const struct run_service *s, const char *tenant);

struct run_service_stats {
	size_t running, queued, boxes;
	bool draining;
};
void run_service_stats(const struct run_service *s, struct run_service_stats *ret_stats);
/** run_service_retry_after - seconds for Retry-After when run_start said ERR_BUSY. */
unsigned run_service_retry_after(const struct run_service *s);
/**
 * run_service_drain - refuse new executions; call @on_drained, from the loop, once nothing is
 * left: no execution and no box. What runs or waits may end by itself within the drain time-out of
 * the configuration; then, or with @at_once, or when called a second time, it is aborted
 * (run_abort). The callback of the last call counts.
 */
void run_service_drain(struct run_service *s, bool at_once, void (*on_drained)(void *ctx),
                       void *ctx);
