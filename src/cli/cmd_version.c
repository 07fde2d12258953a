/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <stdio.h>

static int run(const void *values, const struct args *args, struct error *err)
{
	(void)values;
	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "'%s' is one word too many", args->words[0]);
		return CLI_USAGE;
	}
	(void)puts("millibox " MILLIBOX_VERSION);
	return CLI_OK;
}

const struct command command_version = {
	.name = "version",
	.arguments = "",
	.summary = "Show the version",
	.values_size = 1,
	.run = run,
};
