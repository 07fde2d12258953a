/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: installs packages for commands: "package install", "session install", "template build". */

#include "base/attr.h"
#include "base/error.h"
#include "cli/common_options.h"
#include <jansson.h>

#define PACKAGE_LOCK_HELP                                                                          \
	"lock file to install instead: requirements.txt, package-lock.json, pom.xml; or several: " \
	"Cargo.toml,Cargo.lock"
#define PACKAGE_LAYERS "/api/v1/packages/layers"

struct package_options {
	struct common_options common; /* first: see resource.h */
	const char *language, *manager, *template_id;
	const char *packages;  /* with commas between */
	const char *lock;      /* instead: files, with commas between */
	const char *lock_text; /* their text */
	const char *run;       /* script of the shell, after that */
	const char *session;   /* id; NULL: into a layer */
};

/**
 * package_read_lock - the text of @files (commas between): of several, each follows a line with its
 * name. @files NULL: NULL. *ret_text is owned.
 */
int package_read_lock(const char *files, char **ret_text, struct error *err) attr_must_check;
/**
 * package_install - with progress on stderr. Return: CLI_OK with the daemon's owned object, another
 * exit status if that was reported, or -1.
 */
int package_install(const struct package_options *options, json_t **ret_installed,
                    struct error *err);
