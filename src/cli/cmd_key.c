/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/admin_call.h"
#include "cli/say.h"

#define KEYS       "/api/v1/keys"
#define PAGE_LIMIT 200

struct key_options {
	struct admin_options common;
	const char *tenant;
	const char *name;
	const char *scopes;
	uint64_t expires_us;
};

/* Return: an owned list, or NULL: not UTF-8. */
static json_t *split(const char *text)
{
	json_t *list = json_array();

	for (;;) {
		size_t len = strcspn(text, ",");

		if (json_array_append_new(list, json_stringn(text, len)) < 0) {
			json_decref(list);
			return NULL;
		}
		if (text[len] == '\0')
			return list;
		text += len + 1;
	}
}

static int fill(json_t *body, const struct key_options *o, struct error *err)
{
	const char *tenant = o->tenant ? o->tenant : "default";

	if (json_object_set_new(body, "tenant", json_string(tenant)) < 0)
		return error_set(err, ERR_INVALID, 0, "--tenant: not UTF-8 text");
	if (o->name && json_object_set_new(body, "name", json_string(o->name)) < 0)
		return error_set(err, ERR_INVALID, 0, "--name: not UTF-8 text");
	if (o->scopes && json_object_set_new(body, "scopes", split(o->scopes)) < 0)
		return error_set(err, ERR_INVALID, 0, "--scopes: not UTF-8 text");
	if (o->expires_us)
		(void)json_object_set_new(body, "expires_in",
		                          json_real((double)o->expires_us / USEC_PER_SEC));
	return 0;
}

static char *build(const struct key_options *o, struct error *err)
{
	json_t *body = json_object();
	char *text = NULL;

	if (fill(body, o, err) == 0) {
		text = json_dumps(body, JSON_COMPACT);
		if (!text)
			(void)error_set(err, ERR_SYSTEM, ENOMEM, "make the request");
	}
	json_decref(body);
	return text;
}

static int run_create(const void *values, const struct args *args, struct error *err)
{
	const struct key_options *options = values;
	cleanup_free char *body = NULL;
	struct api_call call = {.method = "POST", .path = KEYS};
	json_t *answer = NULL;
	const char *key;
	int status;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	call.body = body = build(options, err);
	if (!body)
		return CLI_USAGE;
	status = admin_call(&options->common, &call, &answer, err);
	if (!answer)
		return status;
	key = json_string_value(json_object_get(answer, "key"));
	say_print(stdout, key ? key : "");
	(void)putchar('\n');
	say("this is shown once; the daemon keeps no copy of it");
	json_decref(answer);
	return status;
}

static void print_scopes(const json_t *key)
{
	const json_t *scopes = json_object_get(key, "scopes");

	for (size_t i = 0; i < json_array_size(scopes); i++) {
		if (i > 0)
			(void)putchar(',');
		say_print(stdout, json_string_value(json_array_get(scopes, i)));
	}
	(void)putchar('\n');
}

static void print_list(const json_t *answer)
{
	const json_t *list = json_object_get(answer, "keys");

	(void)printf("%-14s%-16s%-10s%-26s%-20s%s\n", "ID", "TENANT", "STATUS", "LAST USED", "NAME",
	             "SCOPES");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *key = json_array_get(list, i);

		admin_print_cell(key, "id", 14);
		admin_print_cell(key, "tenant", 16);
		admin_print_cell(key, "status", 10);
		admin_print_cell(key, "last_used_at", 26);
		admin_print_cell(key, "name", 20);
		print_scopes(key);
	}
}

/* Page by page, until there are no more. */
static int run_list(const void *values, const struct args *args, struct error *err)
{
	const struct key_options *options = values;
	bool more = true;
	int status = CLI_OK;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "takes no arguments");
		return CLI_USAGE;
	}
	for (unsigned offset = 0; more && status == CLI_OK; offset += PAGE_LIMIT) {
		cleanup_free char *path = xasprintf(KEYS "?limit=%d&offset=%u", PAGE_LIMIT, offset);
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

static int run_revoke(const void *values, const struct args *args, struct error *err)
{
	const struct key_options *options = values;
	cleanup_free char *path = admin_path(KEYS, args, "id of a key", err);
	const struct api_call call = {.method = "DELETE", .path = path};
	json_t *answer = NULL;
	int status;

	if (!path)
		return CLI_USAGE;
	status = admin_call(&options->common, &call, &answer, err);
	json_decref(answer);
	return status;
}

#define AT(member) offsetof(struct key_options, member)

/* A row is one option, however long its line. */
/* clang-format off */
static const struct option_row create_rows[] = {
	{"tenant",  't', OPTION_TEXT,     AT(tenant),     "TENANT", "whose it is; default"},
	{"name",    'n', OPTION_TEXT,     AT(name),       "NAME",   "what it is for, for people"},
	{"scopes",  's', OPTION_TEXT,     AT(scopes),     "SCOPES", "read,execute,sessions,files,templates,policy (all of these if none is given),metrics,admin"},
	{"expires", 'e', OPTION_DURATION, AT(expires_us), "TIME",   "not valid any more after this time: 720h"},
	ADMIN_ROWS(AT),
};
static const struct option_row rows[] = {
	ADMIN_ROWS(AT),
};
/* clang-format on */

const struct command command_key_create = {
	.name = "key create",
	.arguments = "",
	.summary = "Make a key for the API and print it, this once",
	.options = {create_rows, ARRAY_SIZE(create_rows)},
	.values_size = sizeof(struct key_options),
	.run = run_create,
};

const struct command command_key_list = {
	.name = "key list",
	.arguments = "",
	.summary = "List keys, oldest first; not their secrets, which nobody has",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct key_options),
	.run = run_list,
};

const struct command command_key_revoke = {
	.name = "key revoke",
	.arguments = "KEY",
	.summary = "Make a key worthless, from now on",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct key_options),
	.run = run_revoke,
};
