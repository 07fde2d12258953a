/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: pages of sessions and runs, newest first, whether in memory or only in the store. Output,
 * code and reports are not read for it.
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
	const char *session_id; /* executions: whose */
	uint64_t session_ms;    /* when that session was made */
	const char *status;     /* NULL: any */
	size_t limit, offset;
};

/* Valid for the call of store_page_fn. */
struct store_page {
	const struct session **sessions;
	const struct run_record **executions;
	size_t count; /* of those on the page */
	size_t total; /* of those that match */
};

/** store_page_fn - @page NULL: *err says why. */
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
