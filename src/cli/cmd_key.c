/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/admin_call.h"
#include "cli/message.h"

struct key_options {
	struct admin_options common;
	const char *tenant;
	const char *name;
	const char *scopes;
	uint64_t expires_us;
};

#define AT(member) offsetof(struct key_options, member)

static const struct admin_field fields[] = {
	{"tenant", ADMIN_TEXT, AT(tenant), "tenant", NULL},
	{"name", ADMIN_TEXT, AT(name), "name", NULL},
	{"scopes", ADMIN_WORDS, AT(scopes), "scopes", NULL},
	{"expires", ADMIN_SECONDS, AT(expires_us), "expires_in", NULL},
};

static const struct admin_column columns[] = {
	{"ID", "id", NULL, 14},         {"TENANT", "tenant", NULL, 16},
	{"STATUS", "status", NULL, 10}, {"LAST USED", "last_used_at", NULL, 26},
	{"NAME", "name", NULL, 20},     {"SCOPES", "scopes", NULL, 0},
};

static const struct admin_noun noun = {
	.base = "/api/v1/keys",
	.what = "id of a key",
	.list = "keys",
	.fields = fields,
	.fields_count = ARRAY_SIZE(fields),
	.columns = columns,
	.columns_count = ARRAY_SIZE(columns),
};

static int run_create(const void *values, const struct args *args, struct error *err)
{
	struct key_options options = *(const struct key_options *)values;
	json_t *answer = NULL;
	const char *key;
	int status;

	options.tenant = options.tenant ? options.tenant : "default";
	status = admin_create(&noun, &options, args, &answer, err);
	if (!answer)
		return status;
	key = json_string_value(json_object_get(answer, "key"));
	message_print_safe(stdout, key ? key : "");
	(void)putchar('\n');
	message_show("this is shown once; the daemon keeps no copy of it");
	message_show("from now on requests over TCP need a key");
	json_decref(answer);
	return status;
}

static int run_list(const void *values, const struct args *args, struct error *err)
{
	return admin_list(&noun, values, args, err);
}

static int run_revoke(const void *values, const struct args *args, struct error *err)
{
	return admin_delete(&noun, values, args, err);
}

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
