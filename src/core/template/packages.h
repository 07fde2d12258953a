/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: Python packages of the host, which boxes on the host's root see too.
 * Names are compared as the package index does: "Foo.Bar" is "foo-bar".
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

struct packages;

#define PACKAGE_NAME_MAX    100
#define PACKAGE_VERSION_MAX 100

void packages_free(struct packages *p);
/** packages_load - @patterns: NULL-terminated globs of directories; missing ones are skipped. */
struct packages *packages_load(const char *const *patterns) attr_owned(packages_free);
struct packages *packages_load_host(void) attr_owned(packages_free);
/** packages_refresh - read the directories again if they changed. @p may be NULL. */
void packages_refresh(struct packages *p);
/** packages_find - its version; NULL: not installed. @p may be NULL. */
const char *packages_find(const struct packages *p, const char *name);
/** package_normalise - lower case; runs of '-', '_' and '.' become one '-'. Return: 0 or -errno. */
int package_normalise(const char *name, char ret_name[PACKAGE_NAME_MAX + 1]) attr_must_check;
/**
 * package_parse_entry - parse NAME-VERSION.dist-info or NAME-VERSION-py3.egg-info; the name is
 * normalised. Return: 0, or -EINVAL: another file.
 */
int package_parse_entry(const char *entry, char ret_name[PACKAGE_NAME_MAX + 1],
                        char ret_version[PACKAGE_VERSION_MAX + 1]) attr_must_check;
/** package_version_fits - @wanted: "1.2", ">=1,<2", "!=1.5"; "": any. */
bool package_version_fits(const char *version, const char *wanted);
