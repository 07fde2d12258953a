/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/admin_call.h"
#include "cli/say.h"

#define TENANTS    "/api/v1/tenants"
#define PAGE_LIMIT 200

/* Quotas as they were typed: "default" is what the settings say. */
struct tenant_options {
	struct admin_options common;
	const char *policy;
	const char *sessions, *executions, *queued, *memory, *rate, *burst;
};

struct quota_option {
	const char *name; /* of the option */
	const char *key;  /* in the body */
	size_t offset;
};

#define AT(member) offsetof(struct tenant_options, member)

static const struct quota_option quotas[] = {
	{"sessions",   "sessions",            AT(sessions)  },
        {"executions", "executions",          AT(executions)},
	{"queued",     "queued",              AT(queued)    },
        {"memory",     "memory",              AT(memory)    },
	{"rate",       "requests_per_second", AT(rate)      },
        {"burst",      "burst",               AT(burst)     },
};

static json_t *quota_value(const char *text)
{
	uint64_t number;

	if (str_equal(text, "default"))
		return json_null();
	if (parse_u64(text, &number) == 0 && number <= INT64_MAX)
		return json_integer((json_int_t)number);
	return json_string(text);
}

static int add_quotas(json_t *body, const struct tenant_options *o, struct error *err)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(quotas); i++) {
		const char *text = *(const char *const *)((const char *)o + quotas[i].offset);

		if (text && json_object_set_new(object, quotas[i].key, quota_value(text)) < 0) {
			json_decref(object);
			return error_set(err, ERR_INVALID, 0, "--%s: not UTF-8 text",
			                 quotas[i].name);
		}
	}
	return json_object_set_new(body, "quotas", object) == 0
	               ? 0
	               : error_set(err, ERR_SYSTEM, ENOMEM, "make the request");
}

/* @name NULL: of a tenant that is there. */
static char *build(const char *name, const struct tenant_options *o, struct error *err)
{
	json_t *body = json_object();
	char *text = NULL;

	if (name && json_object_set_new(body, "name", json_string(name)) < 0)
		(void)error_set(err, ERR_INVALID, 0, "the name is not UTF-8 text");
	else if (o->policy && json_object_set_new(body, "policy", json_string(o->policy)) < 0)
		(void)error_set(err, ERR_INVALID, 0, "--policy: not UTF-8 text");
	else if (add_quotas(body, o, err) == 0)
		text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	return text;
}

/* Silence is success. */
static int ask(const struct tenant_options *options, const struct api_call *call, struct error *err)
{
	json_t *answer = NULL;
	int status = admin_call(&options->common, call, &answer, err);

	json_decref(answer);
	return status;
}

static int run_create(const void *values, const struct args *args, struct error *err)
{
	const struct tenant_options *options = values;
	cleanup_free char *path = admin_path(TENANTS, args, "name of a tenant", err);
	cleanup_free char *body = path ? build(args->words[0], options, err) : NULL;
	const struct api_call call = {.method = "POST", .path = TENANTS, .body = body};

	return body ? ask(options, &call, err) : CLI_USAGE;
}

static int run_set(const void *values, const struct args *args, struct error *err)
{
	const struct tenant_options *options = values;
	cleanup_free char *path = admin_path(TENANTS, args, "name of a tenant", err);
	cleanup_free char *body = path ? build(NULL, options, err) : NULL;
	const struct api_call call = {.method = "PATCH", .path = path, .body = body};

	return body ? ask(options, &call, err) : CLI_USAGE;
}

static int run_delete(const void *values, const struct args *args, struct error *err)
{
	const struct tenant_options *options = values;
	cleanup_free char *path = admin_path(TENANTS, args, "name of a tenant", err);
	const struct api_call call = {.method = "DELETE", .path = path};

	return path ? ask(options, &call, err) : CLI_USAGE;
}

/* "name: limit, used". */
static void print_quotas(const json_t *tenant)
{
	const json_t *limits = json_object_get(tenant, "limits");
	const json_t *usage = json_object_get(tenant, "usage");

	for (size_t i = 0; i < ARRAY_SIZE(quotas); i++) {
		(void)printf("%-20s", quotas[i].key);
		admin_print_cell(limits, quotas[i].key, 12);
		if (json_object_get(usage, quotas[i].key)) {
			(void)printf("used ");
			admin_print_cell(usage, quotas[i].key, 1);
		}
		(void)putchar('\n');
	}
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	const struct tenant_options *options = values;
	cleanup_free char *path = admin_path(TENANTS, args, "name of a tenant", err);
	const struct api_call call = {.method = "GET", .path = path};
	json_t *answer = NULL;
	int status;

	if (!path)
		return CLI_USAGE;
	status = admin_call(&options->common, &call, &answer, err);
	if (!answer)
		return status;
	(void)printf("%-20s%s\n%-20s", "name", args->words[0], "policy");
	admin_print_cell(answer, "policy", 1);
	(void)putchar('\n');
	print_quotas(answer);
	json_decref(answer);
	return status;
}

static void print_list(const json_t *answer)
{
	const json_t *list = json_object_get(answer, "tenants");

	(void)printf("%-24s%-16s%-10s%-12s%-8s%s\n", "NAME", "POLICY", "SESSIONS", "EXECUTIONS",
	             "QUEUED", "MEMORY");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *tenant = json_array_get(list, i);
		const json_t *usage = json_object_get(tenant, "usage");

		admin_print_cell(tenant, "name", 24);
		admin_print_cell(tenant, "policy", 16);
		admin_print_cell(usage, "sessions", 10);
		admin_print_cell(usage, "executions", 12);
		admin_print_cell(usage, "queued", 8);
		admin_print_cell(usage, "memory", 1);
		(void)putchar('\n');
	}
}

static int run_list(const void *values, const struct args *args, struct error *err)
{
	const struct tenant_options *options = values;
	bool more = true;
	int status = CLI_OK;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	for (unsigned offset = 0; more && status == CLI_OK; offset += PAGE_LIMIT) {
		cleanup_free char *path =
			xasprintf(TENANTS "?limit=%d&offset=%u", PAGE_LIMIT, offset);
		const struct api_call call = {.method = "GET", .path = path};
		json_t *answer = NULL;

		status = admin_call(&options->common, &call, &answer, err);
		if (answer)
			print_list(answer);
		more = json_is_true(json_object_get(answer, "has_more"));
		json_decref(answer);
	}
	return status;
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
