/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <stdbool.h>
#include <stdio.h>

#include "cli/message.h"

struct version_options {
	bool json;
};

static int run_version(const void *values, const struct args *args attr_unused,
                       struct error *err attr_unused)
{
	const struct version_options *options = values;
	json_auto_t *object = json_pack("{s:s}", "version", MILLIBOX_VERSION);

	if (options->json)
		message_print_json(object);
	else
		(void)puts("millibox " MILLIBOX_VERSION);
	return CLI_OK;
}

static const struct option_row rows[] = {
	{"json", 0, OPTION_FLAG, offsetof(struct version_options, json), NULL,
         "print the version as JSON"},
};

COMMAND(version, "version", "", "Show the version", run_version, rows, struct version_options);
