/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the outcome of a run as JSON, for every dialect. Values that the host does not measure are
 * null.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <jansson.h>

struct outcome;
struct report;

/** encode_result_report - empty if malformed. */
void encode_result_report(const struct outcome *outcome, struct report *ret_report);

/* What a session's run adds or overrides. Borrowed; may be NULL. */
struct encode_result_extra {
	const json_t *head; /* before the output */
	const json_t *tail; /* after it */
};

/** encode_result_add - @extra may be NULL. Return: 0 or -1: no room; @b then holds a part. */
int encode_result_add(struct buf *b, const struct outcome *outcome, const struct report *report,
                      const struct encode_result_extra *extra) attr_must_check;
/** encode_result_brief - for listings: output is null. Return: owned. */
json_t *encode_result_brief(const struct outcome *outcome, const struct report *report,
                            const struct encode_result_extra *extra) attr_must_check;
