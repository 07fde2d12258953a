/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: package managers: which registry they use, how packages are installed in a box that is made
 * for that, and what a program needs to find them. A layer of packages is mounted at MANAGER_PATH,
 * with one directory per manager. Pure.
 */

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct config;
struct runner;

#define MANAGER_PATH "/opt/millibox/packages"

struct manager {
	const char *name;
	const char *language; /* name of a runner */
	const char *set;      /* name of its hosts in a policy's network.allow */
	/* argv of the installer, NULL-terminated; packages follow (runners/packages/README.md). */
	const char *command[8];
	const char *env[4]; /* of programs and compilers */
	/* Added to env where programs shall not find what the host has; NULL: they never do. */
	const char *alone;
	const char *registry; /* URL unless configured */
	/* In the box of an installation, and in the workspace of a session, where % is the version
	 * of the interpreter; session_dir NULL: not for sessions that live. */
	const char *tree, *session_dir;
	const char *letters; /* of package names, besides letters and digits */
	bool in_root;        /* a root may have them without a layer: root_scan.h finds them */
	size_t url_offset;   /* in struct config */
	/* Settings of the host's own client: a variable, files ("~/" is the user's home), a key.
	 * The URL follows host_prefix, which a value must have, and ends before a letter of
	 * host_end. */
	const char *host_variable, *host_files[4], *host_key, *host_prefix, *host_end;
};

const struct manager *manager_at(size_t index); /* NULL past the end */
/** manager_find - NULL: unknown. */
const struct manager *manager_find(const char *name);
/** manager_of - that of a language, as its manifest says. NULL: none, or not known here. */
const struct manager *manager_of(const struct runner *r);
/** manager_check - whether @package is a name, perhaps with a version. */
bool manager_check(const struct manager *m, const char *package);
