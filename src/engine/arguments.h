/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the command line of millibox-engine and of millibox-oci (src/oci), which the daemon starts
 * with the same words. What only native boxes have, millibox-oci ignores. */

#include "engine/internal.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum arguments_mode {
	MODE_SERVE,
	MODE_PLAN,
	MODE_PROBE,
};

struct arguments {
	enum arguments_mode mode;
	struct options options;
	struct engine_limits limits; /* MODE_PLAN: of the box, as flags */
	uint32_t flags;
	int log_level;  /* enum log_level */
	int log_format; /* enum log_format */
};

struct arguments_program {
	const char *name;
	const char *modes; /* for the usage, with a space behind */
	const char *intro;
	bool has_runtimes;
};

/** arguments_parse - Return: -1 to continue, or an exit status. */
int arguments_parse(const struct arguments_program *program, int argc, char **argv,
                    struct arguments *ret);
int arguments_usage(const struct arguments_program *program, FILE *to);
/** arguments_can_serve - what serving needs was given. */
bool arguments_can_serve(const struct arguments *args);
