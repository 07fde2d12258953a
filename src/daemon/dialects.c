/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dialects.h"

#include "api/mcp/mcp.h"
#include "api/sandboxes/sandboxes.h"
#include "api/se/se.h"
#include "api/v1/v1.h"
#include <stddef.h>

/* se_v2_dialect first: se_dialect's prefix matches it too. */
const struct dialect *const dialects[] = {
	&v1_dialect,
	&mcp_dialect,
	&se_v2_dialect,
	&se_dialect,
	&sandboxes_dialect,
	&sandboxes_tool_dialect,
	&sandboxes_about_dialect,
	NULL,
};
