/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: milliboxd --create-key: the way in for a daemon that may not start without a key. It makes
 * one in the state directory while no daemon has that, prints it and is done.
 */

#include "daemon/daemon.h"

enum daemon_exit first_key_create(const struct config *config);
