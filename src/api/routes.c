/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

/* Every endpoint, one row each. */
static const struct route routes[] = {
	{"GET",  "/healthz",        ROUTE_BODY_NONE, true,  v1_healthz, "Whether the daemon is alive"        },
	{"GET",  "/readyz",         ROUTE_BODY_NONE, true,  v1_readyz,  "Whether the daemon takes executions"},
	{"POST", "/api/v1/execute", ROUTE_BODY_JSON, false, v1_execute,
         "Run code once, in a box of its own"								},
};

const struct route *route_at(size_t index)
{
	return index < ARRAY_SIZE(routes) ? &routes[index] : NULL;
}
