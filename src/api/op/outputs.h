/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: output of executions without a session that was too long for a result: kept for a while, so
 * that who got its head and tail can read all of it. In memory only; the oldest go first, of the
 * tenant that has most before others'. What runs in a session is kept with its execution.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "driver/driver.h"

#define OUTPUTS_MAX_BYTES    (64u << 20)
#define OUTPUTS_TENANT_BYTES (16u << 20)

struct outputs;

void outputs_free(struct outputs *o);
struct outputs *outputs_new(void) attr_owned(outputs_free);
/** outputs_keep - copies of both streams; nothing where they are more than a tenant may have. */
void outputs_keep(struct outputs *o, const char *tenant, const char *execution_id,
                  const struct buf streams[OUTPUT_COUNT]);
/** outputs_find - NULL: there is nothing of it, or it is another tenant's. Borrowed. */
const struct buf *outputs_find(const struct outputs *o, const char *tenant,
                               const char *execution_id, enum output_stream stream);
