/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what this host offers a daemon that this user starts, as "millibox run" would start it. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/doctor.h"

/** host_probe - add the checks of the engine; where systemd makes one, in a scope of the user. */
int host_probe(struct checks *checks, struct error *err) attr_must_check;
