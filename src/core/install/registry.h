/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the registry of each package manager, found once, at the start of the daemon. */

#include "base/attr.h"

struct config;

/**
 * registries_find - a setting, the host's own client's, or the public one. Reads files with the
 * rights of the user who starts the daemon. Return: one URL per manager, NULL-terminated, owned.
 */
char **registries_find(const struct config *config) attr_must_check;
