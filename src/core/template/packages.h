/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the Python packages available in a box on the host's root: those in the directories that
 * the interpreter searches. Read once, at start; boxes see the same directories. Names are
 * compared as the package index does: "Foo.Bar" is "foo-bar".
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

struct packages;

#define PACKAGE_NAME_MAX    100
#define PACKAGE_VERSION_MAX 100

void packages_free(struct packages *p);
/** packages_load - @patterns (glob) of directories, NULL-terminated; missing ones are skipped. */
struct packages *packages_load(const char *const *patterns) attr_owned(packages_free);
/** packages_load_host - those of the host's interpreter. */
struct packages *packages_load_host(void) attr_owned(packages_free);
/** packages_find - its version; NULL: not installed. @p may be NULL: nothing is. */
const char *packages_find(const struct packages *p, const char *name);
/** package_normalise - lower case; runs of '-', '_' and '.' become one '-'. Return: 0 or -errno. */
int package_normalise(const char *name, char ret_name[PACKAGE_NAME_MAX + 1]) attr_must_check;
/**
 * package_parse_entry - the normalised name and the version of a package from the name of its
 * metadata: NAME-VERSION.dist-info, NAME-VERSION-py3.egg-info. Return: 0, or -EINVAL: another file.
 */
int package_parse_entry(const char *entry, char ret_name[PACKAGE_NAME_MAX + 1],
                        char ret_version[PACKAGE_VERSION_MAX + 1]) attr_must_check;
/** package_version_fits - whether @version satisfies @wanted: "1.2", ">=1,<2", "!=1.5"; "": any. */
bool package_version_fits(const char *version, const char *wanted);
