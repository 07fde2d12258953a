/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: installs languages on this host with apt-get. Which packages they need is what the daemon
 * says, from its manifests; its words are checked, because root may run the command.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/** language_find - by name or alias in the daemon's @list; NULL: none. Borrowed. */
const json_t *language_find(const json_t *list, const char *name);
/** language_is_there - a program may be written in it. */
bool language_is_there(const json_t *language);

/* Names of Debian's packages, in the order of the languages. */
struct language_packages {
	const char **names; /* owned; borrowed from the list */
	size_t count;
};

void language_packages_done(struct language_packages *packages);
#define cleanup_language_packages attr_cleanup(language_packages_done)
/** language_packages_add - of @language, each once. ERR_PROTOCOL: what the daemon says is no name.
 */
int language_packages_add(struct language_packages *packages, const json_t *language,
                          struct error *err) attr_must_check;
/** language_packages_command - "apt-get install -y ... NAME...". Return: owned. */
char *language_packages_command(const struct language_packages *packages) attr_must_check;
/** language_packages_install - as root, or through sudo; prints each command before it runs.
 * ERR_UNAVAILABLE: there is no apt-get, or neither root nor sudo. */
int language_packages_install(const struct language_packages *packages,
                              struct error *err) attr_must_check;
