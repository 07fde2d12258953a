/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the daemon as a whole: creates the parts in order, owns them, stops them in reverse. */

#include "base/attr.h"
#include "base/error.h"
#include "daemon/exit_status.h"

struct config;

/** daemon_run - until stopped; logs its errors. Return: the exit status. */
enum daemon_exit daemon_run(const struct config *config);
