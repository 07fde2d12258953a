/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/flags.h"

#include "base/str.h"
#include <stddef.h>
#include <string.h>

/* A flag sets a configuration key or a field of struct flags. */
struct flag {
	const char *name;
	const char *value; /* name of its value; NULL: none */
	const char *key;   /* of the configuration */
	size_t offset;     /* in struct flags, without a key */
	const char *help;
};

#define FIELD(name) offsetof(struct flags, name)

static const struct flag table[] = {
	{"--config", "FILE", NULL, FIELD(config_path), "read settings from FILE (YAML)"},
	{"--listen", "ADDR:PORT", "listen", 0, "TCP address to serve; \"\" for none"},
	{"--socket", "PATH", "socket", 0, "Unix socket to serve; \"\" for none"},
	{"--state-dir", "DIR", "state_dir", 0, "keep state in DIR"},
	{"--isolation", "MODE", "isolation", 0, "strict (the default) or best-effort"},
	{"--log-level", "LEVEL", "log_level", 0, "error, warn, info or debug"},
	{"--log-format", "FORMAT", "log_format", 0, "text or json"},
	{"--check-config", NULL, NULL, FIELD(check_config), "check the settings and exit"},
	{"--dump-config", NULL, NULL, FIELD(dump_config), "print all settings as YAML and exit"},
	{"--json", NULL, NULL, FIELD(json), "with --dump-config: print JSON instead of YAML"},
	{"--check-policy", "FILE", NULL, FIELD(policies),
         "check a policy and exit; may be repeated"},
	{"--create-key", NULL, NULL, FIELD(create_key),
         "create a key with all scopes, print it and exit; only while no daemon runs"},
	{"--rotate-key", NULL, NULL, FIELD(rotate_key),
         "make a new key for secrets, which the next start encrypts anew, and exit"},
	{"--version", NULL, NULL, FIELD(version), "print the version and exit"},
	{"--help", NULL, NULL, FIELD(help), "print this and exit"},
};

/* "--flag" or "--flag=value". */
static const struct flag *find_flag(const char *word, const char **ret_value)
{
	size_t len = strcspn(word, "=");

	*ret_value = word[len] == '=' ? word + len + 1 : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strlen(table[i].name) == len && memcmp(table[i].name, word, len) == 0)
			return &table[i];
	return NULL;
}

static int set_flag(struct flags *flags, const struct flag *flag, const char *value,
                    struct error *err)
{
	void *field = (char *)flags + flag->offset;

	if (!flag->value) {
		*(bool *)field = true;
		return 0;
	}
	if (flag->offset == FIELD(policies)) {
		if (flags->policies_count == FLAGS_POLICIES_MAX)
			return error_set(err, ERR_INVALID, 0, "too many policies");
		flags->policies[flags->policies_count++] = value;
		return 0;
	}
	if (!flag->key) {
		*(const char **)field = value;
		return 0;
	}
	if (flags->overrides_count == FLAGS_OVERRIDES_MAX)
		return error_set(err, ERR_INVALID, 0, "too many options");
	flags->overrides[flags->overrides_count++] = (struct config_override){flag->key, value};
	return 0;
}

int flags_parse(int argc, char *const *argv, struct flags *ret_flags, struct error *err)
{
	*ret_flags = (struct flags){0};
	for (int i = 1; i < argc; i++) {
		const char *value;
		const struct flag *flag = find_flag(argv[i], &value);

		if (!flag)
			return error_set(err, ERR_INVALID, 0, "unknown option '%s'", argv[i]);
		if (value && !flag->value)
			return error_set(err, ERR_INVALID, 0, "%s takes no value", flag->name);
		if (!value && flag->value && i + 1 == argc)
			return error_set(err, ERR_INVALID, 0, "%s needs a value: %s", flag->name,
			                 flag->value);
		if (!value && flag->value)
			value = argv[++i];
		if (set_flag(ret_flags, flag, value, err) < 0)
			return -1;
	}
	return 0;
}

void flags_help(FILE *out)
{
	(void)fprintf(out,
	              "Usage: milliboxd [OPTION]...\n"
	              "Serve the API of Millibox, which runs untrusted code in sandboxes.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		(void)fprintf(out, "  %-14s %-10s %s\n", table[i].name,
		              table[i].value ? table[i].value : "", table[i].help);
	(void)fprintf(out, "\nSettings, for the file and the environment:\n");
	config_help(out);
	(void)fprintf(out,
	              "\nExit status: 0 stopped by a signal, 1 the engine died, 2 wrong usage,\n"
	              "3 wrong settings, 4 a directory, an address or a socket cannot be used,\n"
	              "5 the engine cannot start, 6 privileges cannot be dropped,\n"
	              "7 a layer is missing that isolation: strict requires.\n");
}
