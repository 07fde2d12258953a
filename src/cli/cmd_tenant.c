/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/admin_call.h"

/* Quotas as they were typed: "default" is what the settings say. */
struct tenant_options {
	struct admin_options common;
	const char *policy;
	const char *sessions, *executions, *queued, *memory, *rate, *burst, *templates, *images;
};

#define AT(member) offsetof(struct tenant_options, member)

#define FIRST_QUOTA 1
static const struct admin_field fields[] = {
	{"policy", ADMIN_TEXT, AT(policy), "policy", NULL},
	{"sessions", ADMIN_QUOTA, AT(sessions), "sessions", "quotas"},
	{"executions", ADMIN_QUOTA, AT(executions), "executions", "quotas"},
	{"queued", ADMIN_QUOTA, AT(queued), "queued", "quotas"},
	{"memory", ADMIN_QUOTA, AT(memory), "memory", "quotas"},
	{"rate", ADMIN_QUOTA, AT(rate), "requests_per_second", "quotas"},
	{"burst", ADMIN_QUOTA, AT(burst), "burst", "quotas"},
	{"templates", ADMIN_QUOTA, AT(templates), "templates", "quotas"},
	{"images", ADMIN_QUOTA, AT(images), "images", "quotas"},
};

static const struct admin_column columns[] = {
	{"NAME", "name", NULL, 24},
	{"POLICY", "policy", NULL, 16},
	{"SESSIONS", "sessions", "usage", 10},
	{"EXECUTIONS", "executions", "usage", 12},
	{"QUEUED", "queued", "usage", 8},
	{"MEMORY", "memory", "usage", 0},
};

static const struct admin_noun noun = {
	.base = "/api/v1/tenants",
	.what = "name of a tenant",
	.list = "tenants",
	.name_key = "name",
	.fields = fields,
	.fields_count = ARRAY_SIZE(fields),
	.columns = columns,
	.columns_count = ARRAY_SIZE(columns),
};

static int run_create(const void *values, const struct args *args, struct error *err)
{
	json_t *answer = NULL;
	int status = admin_create(&noun, values, args, &answer, err);

	json_decref(answer);
	return status;
}

static int run_set(const void *values, const struct args *args, struct error *err)
{
	json_t *answer = NULL;
	int status = admin_update(&noun, "PATCH", values, args, &answer, err);

	json_decref(answer);
	return status;
}

static int run_delete(const void *values, const struct args *args, struct error *err)
{
	return admin_delete(&noun, values, args, err);
}

/* "name: limit, used". */
static void print_quotas(const json_t *tenant)
{
	const json_t *limits = json_object_get(tenant, "limits");
	const json_t *usage = json_object_get(tenant, "usage");

	for (size_t i = FIRST_QUOTA; i < ARRAY_SIZE(fields); i++) {
		(void)printf("%-20s", fields[i].key);
		admin_print_cell(limits, fields[i].key, 12);
		if (json_object_get(usage, fields[i].key)) {
			(void)printf("used ");
			admin_print_cell(usage, fields[i].key, 1);
		}
		(void)putchar('\n');
	}
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_t *answer = NULL;
	int status = admin_show(&noun, values, args, &answer, err);

	if (!answer)
		return status;
	(void)printf("%-20s%s\n%-20s", "name", args->words[0], "policy");
	admin_print_cell(answer, "policy", 1);
	(void)putchar('\n');
	print_quotas(answer);
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
	{"policy",     'p', OPTION_TEXT, AT(policy),     "POLICY", "name of its policy; \"\" for the daemon's default one"},
	{"sessions",   0,   OPTION_TEXT, AT(sessions),   "N",      "sessions at the same time; 0 for no bound, \"default\" for what the settings say, as for all of these"},
	{"executions", 0,   OPTION_TEXT, AT(executions), "N",      "executions at the same time; more of them wait"},
	{"queued",     0,   OPTION_TEXT, AT(queued),     "N",      "executions that wait; more are refused"},
	{"memory",     'm', OPTION_TEXT, AT(memory),     "SIZE",   "memory limits of all its boxes together: 16Gi"},
	{"rate",       0,   OPTION_TEXT, AT(rate),       "N",      "requests per second, on average"},
	{"burst",      0,   OPTION_TEXT, AT(burst),      "N",      "requests at once"},
	{"templates",  0,   OPTION_TEXT, AT(templates),  "N",      "templates of its own"},
	{"images",     0,   OPTION_TEXT, AT(images),     "SIZE",   "imported images on the disk, together: 32Gi"},
	ADMIN_ROWS(AT),
};
static const struct option_row rows[] = {
	ADMIN_ROWS(AT),
};
/* clang-format on */

const struct command command_tenant_create = {
	.name = "tenant create",
	.arguments = "TENANT",
	.summary = "Make a tenant",
	.options = {set_rows, ARRAY_SIZE(set_rows)},
	.values_size = sizeof(struct tenant_options),
	.run = run_create,
};

const struct command command_tenant_list = {
	.name = "tenant list",
	.arguments = "",
	.summary = "List tenants and what they use",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct tenant_options),
	.run = run_list,
};

const struct command command_tenant_show = {
	.name = "tenant show",
	.arguments = "TENANT",
	.summary = "Tell about a tenant: policy, quotas, use",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct tenant_options),
	.run = run_show,
};

const struct command command_tenant_set = {
	.name = "tenant set",
	.arguments = "TENANT",
	.summary = "Change a tenant's policy or quotas",
	.options = {set_rows, ARRAY_SIZE(set_rows)},
	.values_size = sizeof(struct tenant_options),
	.run = run_set,
};

const struct command command_tenant_delete = {
	.name = "tenant delete",
	.arguments = "TENANT",
	.summary = "Delete a tenant that has no keys and sessions left",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct tenant_options),
	.run = run_delete,
};
