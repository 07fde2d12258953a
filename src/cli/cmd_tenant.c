/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/resource.h"

/* Quotas are text: a number, a size or "default". */
struct tenant_options {
	struct common_options common;
	const char *policy;
	const char *sessions, *executions, *queued, *memory, *rate, *burst, *templates, *images,
		*secrets;
};

#define AT(member) offsetof(struct tenant_options, member)

#define FIRST_QUOTA 1
static const struct resource_field fields[] = {
	{"policy", RESOURCE_TEXT, AT(policy), "policy", NULL},
	{"sessions", RESOURCE_QUOTA, AT(sessions), "sessions", "quotas"},
	{"executions", RESOURCE_QUOTA, AT(executions), "executions", "quotas"},
	{"queued", RESOURCE_QUOTA, AT(queued), "queued", "quotas"},
	{"memory", RESOURCE_QUOTA, AT(memory), "memory", "quotas"},
	{"rate", RESOURCE_QUOTA, AT(rate), "requests_per_second", "quotas"},
	{"burst", RESOURCE_QUOTA, AT(burst), "burst", "quotas"},
	{"templates", RESOURCE_QUOTA, AT(templates), "templates", "quotas"},
	{"images", RESOURCE_QUOTA, AT(images), "images", "quotas"},
	{"secrets", RESOURCE_QUOTA, AT(secrets), "secrets", "quotas"},
};

static const struct resource_column columns[] = {
	{"NAME", "name", NULL, 24},
	{"POLICY", "policy", NULL, 16},
	{"SESSIONS", "sessions", "usage", 10},
	{"EXECUTIONS", "executions", "usage", 12},
	{"QUEUED", "queued", "usage", 8},
	{"MEMORY", "memory", "usage", 0},
};

static const struct resource tenants = {
	.base = "/api/v1/tenants",
	.what = "tenant name",
	.list = "tenants",
	.name_key = "name",
	RESOURCE_FIELDS(fields),
	RESOURCE_COLUMNS(columns),
};

static int run_create(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;

	return resource_create(&tenants, values, args, &answer, err);
}

static int run_set(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;

	return resource_update(&tenants, "PATCH", values, args, &answer, err);
}

static void print_quotas(const json_t *tenant)
{
	const json_t *limits = json_object_get(tenant, "limits");
	const json_t *usage = json_object_get(tenant, "usage");

	for (size_t i = FIRST_QUOTA; i < ARRAY_SIZE(fields); i++) {
		(void)printf("%-20s", fields[i].key);
		resource_print_cell(limits, fields[i].key, 12);
		if (json_object_get(usage, fields[i].key)) {
			(void)printf("used ");
			resource_print_cell(usage, fields[i].key, 1);
		}
		(void)putchar('\n');
	}
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	json_auto_t *answer = NULL;
	int status = resource_show(&tenants, values, args, &answer, err);

	if (!answer)
		return status;
	(void)printf("%-20s%s\n%-20s", "name", args->words[0], "policy");
	resource_print_cell(answer, "policy", 1);
	(void)putchar('\n');
	print_quotas(answer);
	return status;
}

/* clang-format off */
static const struct option_row set_rows[] = {
	{"policy",     'p', OPTION_TEXT, AT(policy),     "POLICY", "policy of the tenant; \"\": the daemon's default"},
	{"sessions",   0,   OPTION_TEXT, AT(sessions),   "N",      "concurrent sessions; here and below 0: unlimited, \"default\": the daemon's setting"},
	{"executions", 0,   OPTION_TEXT, AT(executions), "N",      "concurrent executions; further ones are queued"},
	{"queued",     0,   OPTION_TEXT, AT(queued),     "N",      "queued executions; further ones are refused"},
	{"memory",     'm', OPTION_TEXT, AT(memory),     "SIZE",   "total memory limit of its boxes: 16Gi"},
	{"rate",       0,   OPTION_TEXT, AT(rate),       "N",      "average requests per second"},
	{"burst",      0,   OPTION_TEXT, AT(burst),      "N",      "requests in a burst; default: twice the rate"},
	{"templates",  0,   OPTION_TEXT, AT(templates),  "N",      "number of templates"},
	{"images",     0,   OPTION_TEXT, AT(images),     "SIZE",   "total size of imported images: 32Gi"},
	{"secrets",    0,   OPTION_TEXT, AT(secrets),    "N",      "number of secrets"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(tenant_create, "tenant create", "TENANT", "Create a tenant", run_create, set_rows,
        struct tenant_options);
COMMAND(tenant_list, "tenant list", "", "List tenants and their usage", resource_run_list,
        resource_rows, struct tenant_options, .data = &tenants);
COMMAND(tenant_show, "tenant show", "TENANT", "Show a tenant: policy, quotas, usage", run_show,
        resource_rows, struct tenant_options);
COMMAND(tenant_set, "tenant set", "TENANT", "Change a tenant's policy or quotas", run_set, set_rows,
        struct tenant_options);
COMMAND(tenant_delete, "tenant delete", "TENANT",
        "Delete a tenant that has no keys and no sessions", resource_run_delete, resource_rows,
        struct tenant_options, .data = &tenants);
