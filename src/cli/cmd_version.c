/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <stdio.h>

static int run_version(const void *values attr_unused, const struct args *args attr_unused,
                       struct error *err attr_unused)
{
	(void)puts("millibox " MILLIBOX_VERSION);
	return CLI_OK;
}

const struct command command_version = {
	.name = "version",
	.arguments = "",
	.summary = "Show the version",
	.values_size = 1,
	.run = run_version,
};
