/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: milliboxd --create-key: for a daemon that may not start without a key. Creates one in the
 * state directory while no daemon uses it, and prints it.
 */

#include "daemon/daemon.h"

enum daemon_exit first_key_create(const struct config *config);
