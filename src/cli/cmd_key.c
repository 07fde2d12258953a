/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "cli/message.h"
#include "cli/resource.h"

struct key_options {
	struct common_options common;
	const char *tenant;
	const char *name;
	const char *scopes;
	uint64_t expires_us;
};

#define AT(member) offsetof(struct key_options, member)

static const struct resource_field fields[] = {
	{"tenant", RESOURCE_TEXT, AT(tenant), "tenant", NULL},
	{"name", RESOURCE_TEXT, AT(name), "name", NULL},
	{"scopes", RESOURCE_WORDS, AT(scopes), "scopes", NULL},
	{"expires", RESOURCE_SECONDS, AT(expires_us), "expires_in", NULL},
};

static const struct resource_column columns[] = {
	{"ID", "id", NULL, 24},         {"TENANT", "tenant", NULL, 16},
	{"STATUS", "status", NULL, 10}, {"LAST USED", "last_used_at", NULL, 26},
	{"NAME", "name", NULL, 20},     {"SCOPES", "scopes", NULL, 0},
};

static const struct resource keys = {
	.base = "/api/v1/keys",
	.what = "key id",
	.list = "keys",
	RESOURCE_FIELDS(fields),
	RESOURCE_COLUMNS(columns),
};

static int run_create(const void *values, const struct args *args, struct error *err)
{
	struct key_options options = *(const struct key_options *)values;
	json_auto_t *answer = NULL;
	int status;

	options.tenant = options.tenant ? options.tenant : "default";
	status = resource_create(&keys, &options, args, &answer, err);
	if (!answer)
		return status;
	message_print_safe(stdout, message_text(answer, "key"));
	(void)putchar('\n');
	message_show("the key is shown only once; the daemon does not store it");
	message_show(
		"requests over TCP now require a key: in the header 'Authorization: Bearer KEY', "
		"for millibox in MILLIBOX_API_KEY");
	return status;
}

/* clang-format off */
static const struct option_row create_rows[] = {
	{"tenant",  't', OPTION_TEXT,     AT(tenant),     "TENANT", "owner of the key; default: default"},
	{"name",    'n', OPTION_TEXT,     AT(name),       "NAME",   "a description"},
	{"scopes",  's', OPTION_TEXT,     AT(scopes),     "SCOPES", "scopes, with commas between: read,execute,sessions,files,templates,policy (the default), metrics,secrets,admin"},
	{"expires", 'e', OPTION_DURATION, AT(expires_us), "TIME",   "lifetime of the key: 720h"},
	COMMON_ROWS(AT(common)),
};
/* clang-format on */

COMMAND(key_create, "key create", "", "Create an API key and print it once", run_create,
        create_rows, struct key_options);
COMMAND(key_list, "key list", "", "List keys, oldest first, without their secrets",
        resource_run_list, resource_rows, struct key_options, .data = &keys);
COMMAND(key_revoke, "key revoke", "KEY", "Revoke a key", resource_run_delete, resource_rows,
        struct key_options, .data = &keys);
