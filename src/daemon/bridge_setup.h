/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: settings of network bridge: checked before the engine starts millibox-bridge with them. */

#include "base/attr.h"
#include "base/error.h"

struct config;

/** bridge_setup_check - the ranges are valid, and root starts the daemon. */
int bridge_setup_check(const struct config *config, struct error *err) attr_must_check;
/** bridge_setup_path - millibox-bridge, beside the engine. Return: owned; NULL: not enabled. */
char *bridge_setup_path(const struct config *config) attr_must_check;
