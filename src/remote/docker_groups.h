/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the groups of a container on this host, for its counters. The server names a process; whose
 * it is, the kernel says: the path of its groups must name the container. Where anything does not
 * fit (another host, another namespace of groups), there are no counters.
 */

#include "engine/engine.h"
#include <jansson.h>

/** docker_groups_open - of what /containers/ID/json says: MEMORY, PIDS and CPU of @ret_fds become
 * descriptors or stay -1. */
void docker_groups_open(const json_t *container, int ret_fds[ENGINE_FD_COUNT]);
