/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "core/config/config.h"
#include "daemon/daemon.h"
#include "daemon/first_key.h"
#include "daemon/flags.h"
#include "daemon/preflight.h"
#include "daemon/secret_setup.h"
#include <stdio.h>
#include <string.h>

/* milliboxd: flags and settings; daemon.c does the rest. */

#define PROGRAM "milliboxd"

/* A failed write of the output is a failure. */
static enum daemon_exit flush_stdout(void)
{
	return fflush(stdout) == 0 ? DAEMON_STOPPED : DAEMON_BAD_PLACE;
}

static enum daemon_exit rotate_key(const struct config *config)
{
	struct error err = {0};

	if (secret_setup_rotate(config, &err) == 0)
		return DAEMON_STOPPED;
	log_error("rotate the key of secrets", &err);
	return DAEMON_BAD_PLACE;
}

/* A check answers a person or a program, not the log. */
static enum daemon_exit refuse_settings(const struct flags *flags, const struct error *err)
{
	if (!flags->check_config && !flags->dump_config && flags->policies_count == 0)
		log_error("settings", err);
	else
		(void)fprintf(stderr, PROGRAM ": %s%s%s\n", err->msg, err->sys ? ": " : "",
		              err->sys ? strerror(err->sys) : "");
	return DAEMON_BAD_CONFIG;
}

static enum daemon_exit with_config(const struct flags *flags)
{
	struct error err = {0};
	attr_cleanup(config_freep) struct config *config =
		config_load(flags->config_path, flags->overrides, flags->overrides_count, &err);

	if (!config)
		return refuse_settings(flags, &err);
	if (flags->policies_count > 0)
		return preflight_check_policies(config, flags->policies, &err) == 0
		               ? DAEMON_STOPPED
		               : refuse_settings(flags, &err);
	if (flags->check_config &&
	    (preflight_settings(config, &err) < 0 ||
	     preflight_check_policies(config, NULL, &err) < 0 || preflight_reach(config, &err) < 0))
		return refuse_settings(flags, &err);
	if (flags->dump_config)
		(flags->json ? config_dump_json : config_dump)(config, stdout);
	if (flags->dump_config || flags->check_config)
		return flush_stdout();
	log_setup(PROGRAM, config->log_level, config->log_format);
	log_find_place();
	if (flags->create_key)
		return first_key_create(config);
	if (flags->rotate_key)
		return rotate_key(config);
	return daemon_run(config);
}

int main(int argc, char **argv)
{
	struct flags flags;
	struct error err = {0};

	log_setup(PROGRAM, LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	if (flags_parse(argc, argv, &flags, &err) < 0) {
		(void)fprintf(stderr, PROGRAM ": %s\nTry '" PROGRAM " --help'.\n", err.msg);
		return DAEMON_BAD_USAGE;
	}
	if (flags.help)
		flags_help(stdout);
	if (flags.version)
		(void)printf(PROGRAM " %s\n", MILLIBOX_VERSION);
	return (int)(flags.help || flags.version ? flush_stdout() : with_config(&flags));
}
