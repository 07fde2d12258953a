/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a runner's report: value, rich results, structured error. As untrusted as the program:
 * checked against a schema, all or nothing. Pure.
 *
 * {"result": any, "results": [{"mime/type": "text"} ...], "error": {"name", "value": strings,
 * "traceback": [strings]}}; each may be null or absent.
 */

#include "base/attr.h"
#include <jansson.h>
#include <stddef.h>

#define REPORT_MAX_BYTES   (4u << 20)
#define REPORT_MAX_RESULTS 256
#define REPORT_MAX_FRAMES  1000

struct report {
	json_t *result;  /* owned; never NULL after report_read: JSON null, [] and null */
	json_t *results; /* owned */
	json_t *error;   /* owned */
};

/**
 * report_read - Return: 0, or -EINVAL: not a report, @ret_report is empty. No text (@len 0) is
 * valid.
 */
int report_read(const char *text, size_t len, struct report *ret_report) attr_must_check;
void report_done(struct report *report);
#define cleanup_report attr_cleanup(report_done)
