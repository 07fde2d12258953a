/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the setting `isolation` against the layers that the driver has found on this host. In strict
 * mode a missing layer ends the start; best-effort is logged.
 */

#include "base/attr.h"
#include "base/error.h"

struct audit;
struct config;
struct driver_caps;

/** isolation_check_least - logs each missing layer without which not even best-effort starts. */
int isolation_check_least(const struct driver_caps *caps, struct error *err) attr_must_check;
/** isolation_check - logs loss and remedy of each required layer that is missing. */
int isolation_check(const struct config *config, const struct driver_caps *caps,
                    struct error *err) attr_must_check;
/** isolation_log - the mode that the daemon starts with, and in best-effort what is missing. */
void isolation_log(const struct config *config, const struct driver_caps *caps);
/** isolation_audit - record that layers may be missing; @audit NULL: audit off. */
void isolation_audit(const struct config *config, struct audit *audit);
