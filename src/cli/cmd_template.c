/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/admin_call.h"
#include "cli/message.h"

#define TEMPLATES "/api/v1/templates"

struct template_options {
	struct admin_options common;
	const char *name, *description, *image, *language;
	uint64_t memory_bytes, disk_bytes, cpu_millicores, processes, timeout_us;
	struct option_list env, packages, preload;
};

#define AT(member) offsetof(struct template_options, member)

static const struct admin_field fields[] = {
	{"name", ADMIN_TEXT, AT(name), "name", NULL},
	{"description", ADMIN_TEXT, AT(description), "description", NULL},
	{"image", ADMIN_TEXT, AT(image), "image", NULL},
	{"language", ADMIN_TEXT, AT(language), "language", NULL},
	{"package", ADMIN_LIST, AT(packages), "packages", NULL},
	{"preload", ADMIN_LIST, AT(preload), "preload", NULL},
	{"env", ADMIN_ENV, AT(env), "env_vars", NULL},
	{"memory", ADMIN_NUMBER, AT(memory_bytes), "memory", "default_resources"},
	{"disk", ADMIN_NUMBER, AT(disk_bytes), "disk", "default_resources"},
	{"cpu", ADMIN_CORES, AT(cpu_millicores), "cpu", "default_resources"},
	{"processes", ADMIN_NUMBER, AT(processes), "max_processes", "default_resources"},
	{"timeout", ADMIN_SECONDS, AT(timeout_us), "default_timeout", NULL},
};

static const struct admin_column columns[] = {
	{"ID", "id", NULL, 24},
	{"ROOT", "root", NULL, 12},
	{"LANGUAGES", "languages", NULL, 20},
	{"WHY NOT", "reason", NULL, 0},
};

static const struct admin_noun noun = {
	.base = TEMPLATES,
	.what = "id of a template",
	.list = "templates",
	.name_key = "id",
	.fields = fields,
	.fields_count = ARRAY_SIZE(fields),
	.columns = columns,
	.columns_count = ARRAY_SIZE(columns),
};

/* Silence is success; what cannot be used yet is worth a word. Takes @answer. */
static int tell(int status, json_t *answer)
{
	const char *reason = json_string_value(json_object_get(answer, "reason"));

	if (reason)
		message_show("it cannot be used yet: %s", reason);
	json_decref(answer);
	return status;
}

static int run_create(const void *values, const struct args *args, struct error *err)
{
	struct template_options options = *(const struct template_options *)values;
	json_t *answer = NULL;
	int status;

	/* Who makes one and says no more means the host. */
	options.name = options.name || args->words_count != 1 ? options.name : args->words[0];
	options.image = options.image ? options.image : "host";
	status = admin_create(&noun, &options, args, &answer, err);
	return tell(status, answer);
}

static int run_update(const void *values, const struct args *args, struct error *err)
{
	json_t *answer = NULL;
	int status = admin_update(&noun, "PUT", values, args, &answer, err);

	return tell(status, answer);
}

static int run_delete(const void *values, const struct args *args, struct error *err)
{
	return admin_delete(&noun, values, args, err);
}

/* What is shown of a template, under which name, and where the answer has it. */
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
	{"reason", "reason", false},
	{"languages", "languages", false},
	{"packages", "packages", false},
	{"preload", "preload", false},
	{"memory", "memory", true},
	{"cpu", "cpu", true},
	{"disk", "disk", true},
	{"processes", "max_processes", true},
	{"timeout", "default_timeout", false}, /* seconds */
};

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_t *answer = NULL;
	int status = admin_show(&noun, values, args, &answer, err);
	const json_t *limits = json_object_get(answer, "default_resources");

	for (size_t i = 0; answer && i < ARRAY_SIZE(lines); i++) {
		(void)printf("%-14s", lines[i].name);
		admin_print_cell(lines[i].is_limit ? limits : answer, lines[i].key, 0);
		(void)putchar('\n');
	}
	json_decref(answer);
	return status;
}

static int run_list(const void *values, const struct args *args, struct error *err)
{
	return admin_list(&noun, values, args, err);
}

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row set_rows[] = {
	{"name",        'n', OPTION_TEXT,     AT(name),           "NAME",       "for people; default: the id"},
	{"description", 0,   OPTION_TEXT,     AT(description),    "TEXT",       "for people"},
	{"image",       'i', OPTION_TEXT,     AT(image),          "IMAGE",      "the root: host, a directory the operator allowed, or an imported template; default: host"},
	{"language",    'l', OPTION_TEXT,     AT(language),       "LANGUAGE",   "of executions that say none"},
	{"memory",      'm', OPTION_SIZE,     AT(memory_bytes),   "SIZE",       "default memory limit: 512Mi, 1Gi"},
	{"cpu",         0,   OPTION_CPU,      AT(cpu_millicores), "CORES",      "default processor share: 1, 0.5, 500m"},
	{"disk",        0,   OPTION_SIZE,     AT(disk_bytes),     "SIZE",       "default room for files: 256Mi"},
	{"processes",   0,   OPTION_NUMBER,   AT(processes),      "N",          "default for processes and threads"},
	{"timeout",     't', OPTION_DURATION, AT(timeout_us),     "TIME",       "idle time-out of its sessions: 60s to 1h"},
	{"env",         'e', OPTION_LIST,     AT(env),            "NAME=VALUE", "set an environment variable; may be repeated"},
	{"package",     'p', OPTION_LIST,     AT(packages),       "NAME",       "a package that must be in the root; may be repeated"},
	{"preload",     0,   OPTION_LIST,     AT(preload),        "MODULE",     "a module that Python imports first; may be repeated"},
	ADMIN_ROWS(AT),
};
static const struct option_row rows[] = {
	ADMIN_ROWS(AT),
};
/* clang-format on */

const struct command command_template_list = {
	.name = "template list",
	.arguments = "",
	.summary = "List templates",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct template_options),
	.run = run_list,
};

const struct command command_template_show = {
	.name = "template show",
	.arguments = "TEMPLATE",
	.summary = "Tell about a template",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct template_options),
	.run = run_show,
};

const struct command command_template_create = {
	.name = "template create",
	.arguments = "TEMPLATE",
	.summary = "Make a template",
	.options = {set_rows, ARRAY_SIZE(set_rows)},
	.values_size = sizeof(struct template_options),
	.run = run_create,
};

const struct command command_template_update = {
	.name = "template update",
	.arguments = "TEMPLATE",
	.summary = "Change a template",
	.options = {set_rows, ARRAY_SIZE(set_rows)},
	.values_size = sizeof(struct template_options),
	.run = run_update,
};

const struct command command_template_delete = {
	.name = "template delete",
	.arguments = "TEMPLATE",
	.summary = "Delete a template that nobody uses",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct template_options),
	.run = run_delete,
};
