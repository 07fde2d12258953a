/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the parts of the daemon that install packages, and the order of their start. */

#include "base/error.h"

struct imports;
struct installs_config;
struct installs;
struct layers;
struct run_service;
struct store;
struct templates;
struct config;

struct install_parts {
	char **registries; /* owned */
	struct layers *layers;
	struct installs *installs;
	struct store *store;      /* borrowed */
	struct run_service *runs; /* borrowed */
};

/** install_parts_find - with the rights of the user who starts the daemon. */
void install_parts_find(struct install_parts *p, const struct config *config);
/** install_parts_load - layers, then templates, which refer to them. */
int install_parts_load(struct install_parts *p, const struct config *config, struct store *store,
                       struct templates *templates, struct error *err) attr_must_check;
/** install_parts_start - @config without layers and registries. */
void install_parts_start(struct install_parts *p, const struct installs_config *config);
/** install_parts_end - frees @imports, too. Before sessions and runs. */
void install_parts_end(struct install_parts *p, struct imports *imports);
/** install_parts_done - after templates were freed. */
void install_parts_done(struct install_parts *p);
