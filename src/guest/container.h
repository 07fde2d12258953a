/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: an agent that a container runtime started (wire/container.h). Nothing here applies to native
 * boxes. */

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct agent;

struct container {
	bool is_used;
	bool by_stdio;
	bool has_own_root;
	int output;     /* of the control stream, if its input cannot be written; or -1 */
	uint32_t lacks; /* mask of enum wire_layer that may be missing */
};

/** container_open - take the control stream from where it is to AGENT_SOCKET, and close what the
 * runtime passed besides. Return: 0 or a negative errno. */
int container_open(struct agent *a, char **argv) attr_must_check;
/** container_check_stream - that no program can open it. */
int container_check_stream(const struct agent *a, struct error *err) attr_must_check;
/** container_say_ready - to the engine; waits until it has taken note. */
void container_say_ready(const struct agent *a);
