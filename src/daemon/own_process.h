/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the daemon takes for its own process while it may. Best effort: less is enough to run.
 */

/** own_process_raise_descriptors - each box needs a handful, each connection one. */
void own_process_raise_descriptors(void);
/**
 * own_process_raise_priority - every tenant waits for the daemon: it weighs more than all boxes
 * together (engine/cgroup.c). Needs privilege.
 */
void own_process_raise_priority(void);
/** own_process_reset_priority - of a child that does one tenant's work. */
void own_process_reset_priority(void);
