/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "cli/package.h"
#include "cli/resource.h"
#include "client/millibox.h"

/* First the packages, with progress; then the template, which finds their layer. */

struct build_options {
	struct common_options common;
	const char *from, *packages, *lock, *run, *image, *language, *apt, *manager;
	const char *system_packages;
	char *lock_text; /* owned */
	struct option_list env, preload;
	const char *name;
};

#define AT(member) offsetof(struct build_options, member)

static const struct resource_field fields[] = {
	{"name", RESOURCE_TEXT, AT(name), "name", NULL},
	{"from", RESOURCE_TEXT, AT(image), "image", NULL},
	{"language", RESOURCE_TEXT, AT(language), "language", NULL},
	{"packages", RESOURCE_WORDS, AT(packages), "packages", NULL},
	{"lock", RESOURCE_TEXT, AT(lock_text), "lock", NULL},
	{"apt", RESOURCE_TEXT, AT(manager), "manager", NULL},
	{"run", RESOURCE_TEXT, AT(run), "run", NULL},
	{"system-packages", RESOURCE_BOOL, AT(system_packages), "system_packages", NULL},
	{"preload", RESOURCE_LIST, AT(preload), "preload", NULL},
	{"env", RESOURCE_ENV, AT(env), "env_vars", NULL},
};

static const struct resource templates = {
	.base = "/api/v1/templates",
	.what = "template id",
	.list = "templates",
	.name_key = "id",
	RESOURCE_FIELDS(fields),
};

/* Of a root without one: packages of Debian need none. */
static const char *root_language(const struct build_options *options)
{
	return options->apt ? NULL : "python";
}

/* "python" is a language on the host's root; other words name a template, whose root is used. */
static int choose_root(struct build_options *options, struct error *err)
{
	cleanup_daemon struct millibox_client *client = daemon_open(&options->common.at);
	cleanup_free char *path = NULL;
	struct daemon_call call = {.method = "GET"};
	json_auto_t *answer = NULL;
	int status = 0;

	options->image = "host";
	options->language = options->from;
	if (!options->from)
		options->language = "python";
	if (!options->from ||
	    strspn(options->from, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
	                          "tuvwxyz0123456789_.-") != strlen(options->from))
		return 0;
	path = xasprintf("/api/v1/templates/%s", options->from);
	call.path = path;
	if (daemon_ask(client, &call, &answer, &status, err) < 0)
		return -1;
	if (status != 200)
		return 0; /* no template: the daemon checks the language */
	options->language = message_text(answer, "language");
	options->language = options->language && *options->language
	                            ? xstrdup(options->language) // NOLINT: until the end
	                            : root_language(options);
	if (!str_equal(message_text(answer, "root"), "host"))
		options->image = options->from;
	return 0;
}

static int install(const struct build_options *options, struct error *err)
{
	const struct package_options packages = {
		.common = options->common,
		.language = options->language,
		.manager = options->manager,
		.template_id = str_equal(options->image, "host") ? NULL : options->image,
		.packages = options->packages,
		.lock_text = options->lock_text,
		.run = options->run,
	};
	json_auto_t *layer = NULL;

	return package_install(&packages, &layer, err);
}

static int run_build(const void *values, const struct args *args, struct error *err)
{
	struct build_options options = *(const struct build_options *)values;
	json_auto_t *answer = NULL;
	int status = CLI_OK;

	options.name = options.name || args->words_count != 1 ? options.name : args->words[0];
	if (options.apt && (options.packages || options.lock))
		return error_set(err, ERR_INVALID, 0,
		                 "--apt: cannot be combined with --packages or --lock");
	if (options.apt) {
		options.packages = options.apt;
		options.manager = "apt";
	}
	if (choose_root(&options, err) < 0 ||
	    package_read_lock(options.lock, &options.lock_text, err) < 0)
		return -1;
	if (options.packages || options.lock_text || options.run)
		status = install(&options, err);
	if (status == CLI_OK)
		status = resource_create(&templates, &options, args, &answer, err);
	free(options.lock_text);
	return status;
}

/* clang-format off */
static const struct option_row rows[] = {
	{"from",     0,   OPTION_TEXT, AT(from),     "NAME",       "language (python, default) or template whose root is used"},
	{"packages", 'p', OPTION_TEXT, AT(packages), "NAMES",      "packages to install, with commas between: numpy,requests==2.32"},
	{"lock",     0,   OPTION_TEXT, AT(lock),     "FILE",       PACKAGE_LOCK_HELP},
	{"apt",      0,   OPTION_TEXT, AT(apt),      "NAMES",      "instead: packages of Debian for the root of an imported image"},
	{"run",      0,   OPTION_TEXT, AT(run),      "SCRIPT",     "shell script to run after that; what it writes to $LAYER is in /opt/millibox/packages/run"},
	{"system-packages", 0, OPTION_TEXT, AT(system_packages), "ANSWER", "yes or no (default): beside these packages, programs find those that the host has"},
	{"preload",  0,   OPTION_LIST, AT(preload),  "MODULE",     "import this Python module in advance; may be repeated"},
	{"env",      'e', OPTION_LIST, AT(env),      "NAME=VALUE", "set an environment variable; may be repeated"},
	{"name",     'n', OPTION_TEXT, AT(name),     "NAME",       "display name; default: the id"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(template_build, "template build", "TEMPLATE",
        "Install packages and create a template with them", run_build, rows, struct build_options);
