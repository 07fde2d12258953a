/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "cli/client/own_daemon.h"
#include "cli/resource.h"
#include "client/millibox.h"
#include <stddef.h>

static const struct resource_column columns[] = {
	{"NAME", "name", NULL, 14},           {"TITLE", "title", NULL, 22},
	{"AVAILABLE", "available", NULL, 11}, {"VERSION", "version", NULL, 12},
	{"STATE", "keeps_state", NULL, 8},    {"INSTALL", "install", NULL, 0},
};

static const struct resource languages = {
	.base = "/api/v1/languages",
	.what = "language",
	.list = "languages",
	RESOURCE_COLUMNS(columns),
};

struct languages_options {
	struct common_options common;
	const char *template_id;
};

#define AT(member) offsetof(struct languages_options, member)

static int run_languages(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct languages_options *options = values;
	cleanup_free char *escaped =
		options->template_id ? millibox_escape(options->template_id) : NULL;
	cleanup_free char *path = xasprintf("%s%s%s", languages.base,
	                                    escaped ? "?template_id=" : "", escaped ? escaped : "");
	const struct daemon_call call = {.method = "GET", .path = path};
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_own_daemon struct own_daemon *own = NULL;
	json_auto_t *answer = NULL;
	int status;

	if (own_daemon_find(client, -1, &own, err) < 0)
		return -1;
	status =
		resource_finish(&options->common, client, daemon_send(client, &call), &answer, err);
	if (answer)
		resource_print_list(&languages, answer, true);
	return status;
}

/* clang-format off */
static const struct option_row rows[] = {
	{"template", 0, OPTION_TEXT, AT(template_id), "TEMPLATE", "languages of boxes of this template; default: the host's"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(languages, "languages", "", "List languages, their versions, and what to install",
        run_languages, rows, struct languages_options,
        .text = "STATE is yes for languages whose variables persist in a session.\n"
                "--json adds aliases, extensions and the options of each language.\n");
