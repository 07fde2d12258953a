/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the life of a program that serves a daemon: millibox-engine, and millibox-oci (src/oci). */

#include "base/error.h"
#include "engine/internal.h"

/** startup_serve - start, serve until the daemon and all boxes are gone. Return: exit status. */
int startup_serve(const struct options *options);
/** startup_fail - log why nothing can be served, and answer the first request with it. Return: exit
 * status. */
int startup_fail(const struct options *options, const struct error *err);
