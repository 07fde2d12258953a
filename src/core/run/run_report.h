/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the end of a run adds to metrics and audit log. */

#include "core/observe/audit.h"
#include "core/observe/metrics.h"
#include "driver/box_spec.h"
#include <jansson.h>
#include <stddef.h>

struct outcome;
struct run_record;

#define RUN_REPORT_HASH_LEN 65 /* hex and NUL */

/** run_report_end - once per run. @metrics, @audit NULL: off. @limits NULL: the session's, which
 * were logged with it. */
void run_report_end(const struct run_record *e, struct metrics *metrics, struct audit *audit,
                    const struct box_limits *limits);
/** run_report_metrics - @outcome NULL: it could not run. */
void run_report_metrics(struct metrics *m, const char *language, const struct outcome *outcome);
/** run_report_hash - SHA-256: the log identifies code without containing it. */
void run_report_hash(const char *code, size_t len, char ret_hex[RUN_REPORT_HASH_LEN]);
/** run_report_limits - as JSON. Return: owned. */
json_t *run_report_limits(const struct box_limits *limits) attr_must_check;
