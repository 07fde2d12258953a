/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/daemon_check.h"
#include "cli/message.h"
#include "cli/resource.h"

#define CHECK_OPTION "--check-policy"
#define POLICIES     "/api/v1/policies"

struct policy_options {
	struct common_options common;
	const char *config;
};

static int run_list(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct daemon_call call = {.method = "GET", .path = POLICIES};
	json_auto_t *answer = NULL;
	const json_t *list;
	int status = resource_call(values, &call, &answer, err);

	if (!answer)
		return status;
	list = json_object_get(answer, "policies");
	(void)printf("%-20s%-12s%s\n", "NAME", "USE", "DESCRIPTION");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *policy = json_array_get(list, i);
		bool is_selectable = json_is_true(json_object_get(policy, "selectable"));
		bool is_yours = json_is_true(json_object_get(policy, "yours"));

		resource_print_cell(policy, "name", 20);
		(void)printf("%-12s", is_yours ? "yours" : is_selectable ? "selectable" : "-");
		resource_print_cell(policy, "description", 0);
		(void)putchar('\n');
	}
	return status;
}

static void print_rule(const json_t *rule)
{
	const json_t *value = json_object_get(rule, "value");

	resource_print_cell(rule, "path", 32);
	if (json_is_string(value))
		message_print_safe(stdout, json_string_value(value));
	(void)fputs(json_is_array(value) ? "[" : "", stdout);
	for (size_t i = 0; i < json_array_size(value); i++) {
		(void)fputs(i ? ", " : "", stdout);
		message_print_safe(stdout, json_string_value(json_array_get(value, i)));
	}
	(void)fputs(json_is_array(value) ? "]  (" : "  (", stdout);
	resource_print_cell(rule, "policy", 0);
	(void)printf(", line %lld)\n",
	             (long long)json_integer_value(json_object_get(rule, "line")));
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
	const char *name = args->words_count == 1 ? args->words[0] : "";
	cleanup_free char *path = xasprintf(POLICIES "/%s", name);
	const struct daemon_call call = {.method = "GET", .path = path};
	json_auto_t *answer = NULL;
	const json_t *rules;
	int status;

	/* It becomes part of a path. */
	if (!*name || name[strspn(name, letters)] != '\0')
		return error_set(err, ERR_INVALID, 0, "expected one policy name");
	status = resource_call(values, &call, &answer, err);
	rules = json_object_get(answer, "rules");
	for (size_t i = 0; i < json_array_size(rules); i++)
		print_rule(json_array_get(rules, i));
	return status;
}

static int run_check(const void *values, const struct args *args, struct error *err)
{
	const struct policy_options *options = values;
	cleanup_free const char **flags = xcalloc(2 * args->words_count + 3, sizeof(*flags));
	size_t n = 0;

	if (args->words_count == 0)
		return error_set(err, ERR_INVALID, 0, "expected policy files");
	for (size_t i = 0; i < args->words_count; i++) {
		flags[n++] = CHECK_OPTION;
		flags[n++] = args->words[i];
	}
	if (options->config) {
		flags[n++] = "--config";
		flags[n++] = options->config;
	}
	return daemon_check(flags, args, options->common.json, err);
}

#define AT(member) offsetof(struct policy_options, member)

static const struct option_row check_rows[] = {
	{"config", 0, OPTION_TEXT, AT(config), "FILE", "settings file of the daemon"},
	{"json", 0, OPTION_FLAG, AT(common.json), NULL, DAEMON_CHECK_JSON},
};

COMMAND(policy_list, "policy list", "",
        "List the policies that apply to you or that requests may name", run_list, resource_rows,
        struct policy_options);
COMMAND(policy_show, "policy show", "NAME", "Print every rule of a policy with its file and line",
        run_show, resource_rows, struct policy_options);
COMMAND(policy_check, "policy check", "FILE...", "Check policy files, without a daemon", run_check,
        check_rows, struct policy_options,
        .text = "Each file replaces the daemon's policy of the same name for the check.\n"
                "The exit status is 0 if all files are valid, else 1.\n");
