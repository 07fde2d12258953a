/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/client/program.h"
#include "cli/daemon_check.h"
#include "cli/message.h"
#include "daemon/exit_status.h"

/* The daemon has the table of settings: it is run, so that both agree. */

#define OUTPUT_MAX (1 * MIB)
#define ENV_PREFIX "MILLIBOX_"

struct config_options {
	const char *config;
	bool json;
};

/* Return: CLI_OK; CLI_FAILED: a setting is wrong, and the daemon said so; or -1 with *err. */
static int ask_daemon(const char *flag, const char *file, bool json, struct buf *ret_out,
                      struct error *err)
{
	cleanup_free char *daemon = program_find("milliboxd", err);
	const char *const argv[] = {daemon, flag, json ? "--json" : flag, file ? "--config" : NULL,
	                            file,   NULL};
	int status = 0;

	if (!daemon || program_read(argv, ret_out, &status, err) < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == DAEMON_BAD_CONFIG)
		return CLI_FAILED;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
	               ? CLI_OK
	               : error_set(err, ERR_SYSTEM, 0, "milliboxd %s failed", flag);
}

static int run_show(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct config_options *options = values;
	cleanup_buf struct buf out = BUF_INIT(OUTPUT_MAX);
	json_auto_t *settings = NULL;
	int status = ask_daemon("--dump-config", options->config, options->json, &out, err);

	if (status != CLI_OK)
		return status;
	if (!options->json) {
		(void)fwrite(out.data, 1, out.len, stdout);
		return CLI_OK;
	}
	settings = json_loadb(out.data ? out.data : "", out.len, 0, NULL);
	if (!settings)
		return error_set(err, ERR_PROTOCOL, 0, "cannot parse the settings of milliboxd");
	message_print_json(settings);
	return CLI_OK;
}

static int run_validate(const void *values, const struct args *args, struct error *err)
{
	const struct config_options *options = values;
	const char *words[] = {"--check-config", "--config", NULL, NULL};

	if (args->words_count != 1)
		return error_set(err, ERR_INVALID, 0, "expected one settings file");
	words[2] = args->words[0];
	return daemon_check(words, args, options->json, err);
}

/* Defaults, not what this terminal sets. */
static void clear_settings(void)
{
	for (char **e = environ; *e;) {
		cleanup_free char *name = xstrndup(*e, strcspn(*e, "="));

		if (str_has_prefix(name, ENV_PREFIX) && unsetenv(name) == 0)
			e = environ;
		else
			e++;
	}
}

/* Every setting as a comment: a line takes effect when the '#' before it goes. */
static void print_commented(const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t line = stop ? (size_t)(stop - text) : (size_t)(end - text);
		size_t indent = strspn(text, " ");
		bool is_setting = indent < line && text[indent] != '#';

		(void)printf("%s%.*s\n", is_setting ? "#" : "", (int)line, text);
		text += line + 1;
	}
}

static int run_generate(const void *values attr_unused, const struct args *args attr_unused,
                        struct error *err)
{
	cleanup_buf struct buf out = BUF_INIT(OUTPUT_MAX);
	cleanup_free char *text = NULL;
	size_t len = 0;
	int status;

	clear_settings();
	status = ask_daemon("--dump-config", NULL, false, &out, err);
	if (status != CLI_OK)
		return status;
	text = buf_take(&out, &len);
	(void)puts(
		"# Settings of milliboxd, with their defaults on this host. Remove the '#' at the\n"
		"# start of a line, and of the section above it, to change a value.");
	print_commented(text, len);
	return CLI_OK;
}

static const struct option_row show_rows[] = {
	{"config", 0, OPTION_TEXT, offsetof(struct config_options, config), "FILE",
         "settings file of the daemon"},
	{"json", 0, OPTION_FLAG, offsetof(struct config_options, json), NULL,
         "print the settings as JSON"},
};
static const struct option_row validate_rows[] = {
	{"json", 0, OPTION_FLAG, offsetof(struct config_options, json), NULL, DAEMON_CHECK_JSON},
};

COMMAND(config_show, "config show", "", "Print the settings that a daemon would use", run_show,
        show_rows, struct config_options,
        .text = "File, environment (MILLIBOX_...) and defaults together, as YAML.\n");
COMMAND(config_validate, "config validate", "FILE", "Check a settings file, without a daemon",
        run_validate, validate_rows, struct config_options,
        .text = "The exit status is 0 if the file is valid, else 1.\n");
const struct command command_config_generate = {
	.name = "config generate",
	.arguments = "",
	.summary = "Print a settings file with all defaults",
	.run = run_generate,
	.values_size = 1,
};
