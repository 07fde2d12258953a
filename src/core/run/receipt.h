/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the receipt of a run: what isolated it, and by request a signature that binds this to the
 * execution, its code, its output, its outcome and its times. docs/receipts.md has the format.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "core/request/run_request.h"
#include "core/run/outcome.h"
#include <jansson.h>

struct run_record;
struct seal_key;

#define RECEIPT_FORMAT "millibox-receipt-1"

/** receipt_isolation - `isolation` of a result, in the form that was requested. Return: owned. */
json_t *receipt_isolation(const struct outcome *outcome) attr_must_check;
/** receipt_isolation_add - the same as text: a program in a session may take less time than an
 * object of it. Return: 0, or -ENOBUFS. */
int receipt_isolation_add(struct buf *b, const struct outcome *outcome) attr_must_check;
/** receipt_sign - before the record ends: it has the code and the output. Return: owned. */
json_t *receipt_sign(const struct seal_key *key, const struct run_record *record,
                     const struct outcome *outcome) attr_must_check;
