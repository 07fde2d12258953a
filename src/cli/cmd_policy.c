/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "cli/client/api_call.h"
#include "cli/client/program.h"
#include "cli/common_options.h"
#include "cli/message.h"

/* Policies that a daemon has, and files that may become some. */

#define STATUS_OK    200
#define OUTPUT_MAX   4096
#define CHECK_OPTION "--check-policy"
#define POLICIES     "/api/v1/policies"

struct policy_options {
	const char *config;
	struct endpoint_options at;
	bool json;
};

static const char *member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "-";
}

/* Return: CLI_OK with the answer; otherwise everything was said, or is in *err. */
static int ask(const struct policy_options *options, const char *path, json_t **ret_answer,
               struct error *err)
{
	const struct api_call call = {.method = "GET", .path = path};
	cleanup_endpoint struct endpoint endpoint = {0};
	json_t *answer = NULL;
	int status = 0;

	if (api_endpoint(&options->at, &endpoint, err) < 0)
		return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
	if (api_call(&endpoint, &call, &answer, &status, err) < 0)
		return CLI_ERROR;
	if (options->json)
		message_print_json(answer);
	else if (status != STATUS_OK)
		message_show_problem(answer);
	else
		*ret_answer = json_incref(answer);
	json_decref(answer);
	return status == STATUS_OK ? CLI_OK : CLI_ERROR;
}

static void print_cell(const char *text, int width)
{
	int len = (int)strlen(text);

	message_print_safe(stdout, text);
	(void)printf("%*s", width > len ? width - len : 1, "");
}

static const char *use_of(const json_t *policy)
{
	if (json_is_true(json_object_get(policy, "yours")))
		return "yours";
	return json_is_true(json_object_get(policy, "selectable")) ? "selectable" : "-";
}

static int run_list(const void *values, const struct args *args, struct error *err)
{
	json_t *answer = NULL;
	const json_t *list;
	int status;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	status = ask(values, POLICIES, &answer, err);
	if (!answer)
		return status;
	list = json_object_get(answer, "policies");
	(void)printf("%-20s%-12s%s\n", "NAME", "USE", "DESCRIPTION");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *policy = json_array_get(list, i);

		print_cell(member(policy, "name"), 20);
		print_cell(use_of(policy), 12);
		message_print_safe(stdout, member(policy, "description"));
		(void)putchar('\n');
	}
	json_decref(answer);
	return status;
}

static void print_value(const json_t *value)
{
	if (json_is_string(value))
		message_print_safe(stdout, json_string_value(value));
	(void)fputs(json_is_array(value) ? "[" : "", stdout);
	for (size_t i = 0; i < json_array_size(value); i++) {
		(void)fputs(i ? ", " : "", stdout);
		message_print_safe(stdout, json_string_value(json_array_get(value, i)));
	}
	(void)fputs(json_is_array(value) ? "]" : "", stdout);
}

static void print_rule(const json_t *rule)
{
	print_cell(member(rule, "path"), 32);
	print_value(json_object_get(rule, "value"));
	(void)fputs("  (", stdout);
	message_print_safe(stdout, member(rule, "policy"));
	(void)printf(", line %lld)\n",
	             (long long)json_integer_value(json_object_get(rule, "line")));
}

static int run_show(const void *values, const struct args *args, struct error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
	const char *name = args->words_count == 1 ? args->words[0] : "";
	cleanup_free char *path = xasprintf(POLICIES "/%s", name);
	json_t *answer = NULL;
	const json_t *rules;
	int status;

	/* It becomes part of a path. */
	if (!*name || name[strspn(name, letters)] != '\0') {
		(void)error_set(err, ERR_INVALID, 0, "give the name of one policy");
		return CLI_USAGE;
	}
	status = ask(values, path, &answer, err);
	rules = json_object_get(answer, "rules");
	for (size_t i = 0; i < json_array_size(rules); i++)
		print_rule(json_array_get(rules, i));
	json_decref(answer);
	return status;
}

/* The daemon's own eyes: what it would take is what is told to be fine. */
static char **check_argv(const char *daemon, const struct policy_options *options,
                         const struct args *args)
{
	char **argv = xcalloc(2 * args->words_count + 4, sizeof(*argv));
	size_t n = 0;

	argv[n++] = xstrdup(daemon);
	if (options->config) {
		argv[n++] = xstrdup("--config");
		argv[n++] = xstrdup(options->config);
	}
	for (size_t i = 0; i < args->words_count; i++) {
		argv[n++] = xstrdup(CHECK_OPTION);
		argv[n++] = xstrdup(args->words[i]);
	}
	return argv;
}

static int run_check(const void *values, const struct args *args, struct error *err)
{
	cleanup_buf struct buf out = BUF_INIT(OUTPUT_MAX);
	cleanup_free char *daemon = NULL;
	cleanup_str_list char **argv = NULL;
	int status = 0;

	if (args->words_count == 0) {
		(void)error_set(err, ERR_INVALID, 0, "give files with policies");
		return CLI_USAGE;
	}
	daemon = program_find("milliboxd", err);
	if (!daemon)
		return CLI_ERROR;
	argv = check_argv(daemon, values, args);
	if (program_read((const char *const *)argv, &out, &status, err) < 0)
		return CLI_ERROR;
	/* It has said why on stderr, which is ours. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return CLI_FAILED;
	for (size_t i = 0; i < args->words_count; i++) {
		message_print_safe(stdout, args->words[i]);
		(void)puts(": fine");
	}
	return CLI_OK;
}

#define AT(member) offsetof(struct policy_options, member)

static const struct option_row rows[] = {
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the daemon's answer"},
	ENDPOINT_ROWS(AT(at)),
};

static const struct option_row check_rows[] = {
	{"config", 0, OPTION_TEXT, AT(config), "FILE",
         "settings of the daemon that would read them"},
};

const struct command command_policy_list = {
	.name = "policy list",
	.arguments = "",
	.summary = "List the policies that one may be held to",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct policy_options),
	.run = run_list,
};

const struct command command_policy_show = {
	.name = "policy show",
	.arguments = "NAME",
	.summary = "Print every rule of a policy, and which file says it where",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct policy_options),
	.run = run_show,
};

const struct command command_policy_check = {
	.name = "policy check",
	.arguments = "FILE...",
	.summary = "Check files with policies, without a daemon",
	.text = "They are read as the daemon would read them, in place of its own of the same "
		"name.\n"
		"The exit status is 0 when all are fine, 1 when one is not.\n",
	.options = {check_rows, ARRAY_SIZE(check_rows)},
	.values_size = sizeof(struct policy_options),
	.run = run_check,
};
