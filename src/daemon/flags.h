/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the command line of milliboxd: the most common settings; the rest is in the file. */

#include "base/attr.h"
#include "core/config/config.h"
#include <stdbool.h>
#include <stdio.h>

#define FLAGS_OVERRIDES_MAX 8
#define FLAGS_POLICIES_MAX  64

struct flags {
	const char *config_path; /* NULL: none */
	struct config_override overrides[FLAGS_OVERRIDES_MAX];
	size_t overrides_count;
	const char *policies[FLAGS_POLICIES_MAX + 1]; /* to check; NULL-terminated */
	size_t policies_count;
	bool check_config, dump_config, json, create_key, rotate_key, version, help;
};

/** flags_parse - strings point into argv. Return: 0, or -1 (ERR_INVALID). */
int flags_parse(int argc, char *const *argv, struct flags *ret_flags,
                struct error *err) attr_must_check;
void flags_help(FILE *out);
