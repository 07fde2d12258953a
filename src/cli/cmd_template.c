/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/message.h"
#include "cli/resource.h"

#define TEMPLATES "/api/v1/templates"

struct template_options {
	struct common_options common;
	const char *name, *description, *image, *language, *system_packages, *engine,
		*min_isolation;
	uint64_t memory_bytes, disk_bytes, cpu_millicores, processes, timeout_us;
	struct option_list env, packages, preload;
};

#define AT(member) offsetof(struct template_options, member)

static const struct resource_field fields[] = {
	{"name", RESOURCE_TEXT, AT(name), "name", NULL},
	{"description", RESOURCE_TEXT, AT(description), "description", NULL},
	{"image", RESOURCE_TEXT, AT(image), "image", NULL},
	{"language", RESOURCE_TEXT, AT(language), "language", NULL},
	{"engine", RESOURCE_TEXT, AT(engine), "engine", NULL},
	{"min-isolation", RESOURCE_TEXT, AT(min_isolation), "min_isolation", NULL},
	{"package", RESOURCE_LIST, AT(packages), "packages", NULL},
	{"system-packages", RESOURCE_BOOL, AT(system_packages), "system_packages", NULL},
	{"preload", RESOURCE_LIST, AT(preload), "preload", NULL},
	{"env", RESOURCE_ENV, AT(env), "env_vars", NULL},
	{"memory", RESOURCE_NUMBER, AT(memory_bytes), "memory", "default_resources"},
	{"disk", RESOURCE_NUMBER, AT(disk_bytes), "disk", "default_resources"},
	{"cpu", RESOURCE_CORES, AT(cpu_millicores), "cpu", "default_resources"},
	{"processes", RESOURCE_NUMBER, AT(processes), "max_processes", "default_resources"},
	{"timeout", RESOURCE_SECONDS, AT(timeout_us), "default_timeout", NULL},
};

static const struct resource_column columns[] = {
	{"ID", "id", NULL, 24},
	{"ROOT", "root", NULL, 12},
	{"LANGUAGE", "language", NULL, 12},
	{"AVAILABLE", "available", NULL, 11},
	{"WHY NOT", "reason", NULL, 0},
};

static const struct resource templates = {
	.base = TEMPLATES,
	.what = "template id",
	.list = "templates",
	.name_key = "id",
	RESOURCE_FIELDS(fields),
	RESOURCE_COLUMNS(columns),
};

static void show_reason(const json_t *answer)
{
	const char *reason = json_string_value(json_object_get(answer, "reason"));

	if (reason)
		message_show("the template cannot be used yet: %s", reason);
}

static int run_create(const void *values, const struct args *args, struct error *err)
{
	struct template_options options = *(const struct template_options *)values;
	json_auto_t *answer = NULL;
	int status;

	options.name = options.name || args->words_count != 1 ? options.name : args->words[0];
	options.image = options.image ? options.image : "host";
	status = resource_create(&templates, &options, args, &answer, err);
	show_reason(answer);
	return status;
}

static int run_update(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = resource_update(&templates, "PUT", values, args, &answer, err);

	show_reason(answer);
	return status;
}

static const struct {
	const char *name, *key;
	bool is_limit;
} lines[] = {
	{"id", "id", false},
	{"name", "name", false},
	{"description", "description", false},
	{"image", "image", false},
	{"root", "root", false},
	{"language", "language", false},
	{"engine", "engine", false},
	{"least grade", "min_isolation", false},
	{"reason", "reason", false},
	{"languages", "languages", false},
	{"packages", "packages", false},
	{"host packages", "system_packages", false},
	{"preload", "preload", false},
	{"memory", "memory", true},
	{"cpu", "cpu", true},
	{"disk", "disk", true},
	{"processes", "max_processes", true},
	{"timeout", "default_timeout", false}, /* seconds */
};

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = resource_show(&templates, values, args, &answer, err);
	const json_t *limits = json_object_get(answer, "default_resources");

	for (size_t i = 0; answer && i < ARRAY_SIZE(lines); i++) {
		(void)printf("%-14s", lines[i].name);
		resource_print_cell(lines[i].is_limit ? limits : answer, lines[i].key, 0);
		(void)putchar('\n');
	}
	return status;
}

/* clang-format off */
static const struct option_row set_rows[] = {
	{"name",        'n', OPTION_TEXT,     AT(name),           "NAME",       "display name; default: the id"},
	{"description", 0,   OPTION_TEXT,     AT(description),    "TEXT",       "a description"},
	{"image",       'i', OPTION_TEXT,     AT(image),          "IMAGE",      "root of the box: host (default), a directory in templates.dirs, or an imported template"},
	{"language",    'l', OPTION_TEXT,     AT(language),       "LANGUAGE",   "default language"},
	{"engine",      0,   OPTION_TEXT,     AT(engine),         "NAME",       "engine that makes its boxes, see millibox doctor"},
	{"min-isolation", 0, OPTION_TEXT,     AT(min_isolation),  "GRADE",      "least grade of isolation of its boxes: namespace, gvisor or vm"},
	{"memory",      'm', OPTION_SIZE,     AT(memory_bytes),   "SIZE",       "default memory limit: 512Mi, 1Gi"},
	{"cpu",         0,   OPTION_CPU,      AT(cpu_millicores), "CORES",      "default CPU limit: 1, 0.5, 500m"},
	{"disk",        0,   OPTION_SIZE,     AT(disk_bytes),     "SIZE",       "default disk limit: 256Mi"},
	{"processes",   0,   OPTION_NUMBER,   AT(processes),      "N",          "default limit of processes and threads"},
	{"timeout",     't', OPTION_DURATION, AT(timeout_us),     "TIME",       "default idle time-out of sessions: 60s to 1h"},
	{"env",         'e', OPTION_LIST,     AT(env),            "NAME=VALUE", "set an environment variable; may be repeated"},
	{"package",     'p', OPTION_LIST,     AT(packages),       "NAME",       "require this package in the root; may be repeated"},
	{"system-packages", 0, OPTION_TEXT,   AT(system_packages), "ANSWER",    "yes or no (default): beside installed packages, programs find those that the host has"},
	{"preload",     0,   OPTION_LIST,     AT(preload),        "MODULE",     "import this Python module in advance; may be repeated"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(template_list, "template list", "", "List templates", resource_run_list, resource_rows,
        struct template_options, .data = &templates);
COMMAND(template_show, "template show", "TEMPLATE", "Show a template", run_show, resource_rows,
        struct template_options);
COMMAND(template_create, "template create", "TEMPLATE", "Create a template", run_create, set_rows,
        struct template_options);
COMMAND(template_update, "template update", "TEMPLATE", "Change a template", run_update, set_rows,
        struct template_options);
COMMAND(template_delete, "template delete", "TEMPLATE", "Delete a template that is not in use",
        resource_run_delete, resource_rows, struct template_options, .data = &templates);
