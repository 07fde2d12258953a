/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: pages of sessions and runs, newest first, from memory and store. Does not read output, code
 * and reports.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

struct run_record;
struct run_records;
struct session;
struct session_service;
struct store_list;

/* Borrowed for the call. */
struct store_query {
	const char *tenant;
	const char *session_id;
	uint64_t session_ms; /* its created_ms */
	const char *status;  /* NULL: any */
	size_t limit, offset;
};

/* Valid during store_page_fn. */
struct store_page {
	const struct session **sessions;
	const struct run_record **executions;
	size_t count;
	size_t total; /* matching */
};

/** store_page_fn - @page NULL: see @err. */
typedef void store_page_fn(void *ctx, const struct store_page *page, const struct error *err);

/** store_list_sessions - ERR_BUSY. @fn is called from the loop; see store_list_cancel. */
struct store_list *store_list_sessions(struct session_service *sessions,
                                       const struct store_query *query, store_page_fn *fn,
                                       void *ctx, struct error *err) attr_must_check;
struct store_list *store_list_executions(struct run_records *executions,
                                         const struct store_query *query, store_page_fn *fn,
                                         void *ctx, struct error *err) attr_must_check;
/** store_list_cancel - @fn is not called. */
void store_list_cancel(struct store_list *list);
