/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: output of one-shot runs that was too long for a result, in memory, for a while. The oldest
 * go first, a tenant's over its share before others'. A session's output is kept with its record.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "driver/driver.h"

#define OUTPUTS_MAX_BYTES    (64u << 20)
#define OUTPUTS_TENANT_BYTES (16u << 20)

struct outputs;

void outputs_free(struct outputs *o);
struct outputs *outputs_new(void) attr_owned(outputs_free);
/** outputs_keep - copies both streams, unless they exceed a tenant's share. */
void outputs_keep(struct outputs *o, const char *tenant, const char *execution_id,
                  const struct buf streams[OUTPUT_COUNT]);
/** outputs_find - NULL: unknown, dropped, or another tenant's. Borrowed. */
const struct buf *outputs_find(const struct outputs *o, const char *tenant,
                               const char *execution_id, enum output_stream stream);
