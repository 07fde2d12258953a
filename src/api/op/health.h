/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: whether the daemon can do its work. */

#include "base/attr.h"
#include <jansson.h>
#include <stdbool.h>

struct http_request;
struct router;

/** health_can_store - the store accepts writes, or there is none. */
bool health_can_store(const struct router *r);
bool health_can_run(const struct router *r);
bool health_is_ready(const struct router *r);
/** health_view - {status, version, uptime}. Return: owned. */
json_t *health_view(const struct router *r) attr_must_check;
/** health_reply - with 200 or 503. */
void health_reply(const struct router *r, struct http_request *req);
