/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what runs before the engine serves: privilege.c, namespaces.c, bridge_start.c, guard.c. */

#include "base/attr.h"
#include "base/error.h"
#include "engine/internal.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* privilege.c */
/** privilege_find - ids for boxes, of root or of the user who started the engine. */
int privilege_find(const struct options *options, struct privilege *ret_privilege,
                   struct error *err) attr_must_check;
/** privilege_raise_limits - of the process that makes the namespaces. */
void privilege_raise_limits(void);
/** subids_map - write the maps of process @pid with newuidmap and newgidmap. */
int subids_map(pid_t pid, const struct ids *ids, struct error *err) attr_must_check;
/** wait_for_program - Return: exit status, or -1. */
int wait_for_program(pid_t child);
/** privilege_harden - give up what serving does not need. */
int privilege_harden(const struct host *host, struct error *err) attr_must_check;
/** privilege_boxes_max - boxes that fit into the limit of open files. */
uint32_t privilege_boxes_max(void);
bool privilege_has(int capability);

/* namespaces.c */
/**
 * namespaces_enter - clone the engine into namespaces of its own, and into the v2 group @group
 * unless that is -1. Return: in the caller the pid of the engine, or -1; in the engine 0, with @err
 * set if it failed there. *ret_link: owned; the other side closes its end when it dies.
 */
pid_t namespaces_enter(const struct ids *ids, int group, int *ret_link,
                       struct error *err) attr_must_check;
/**
 * namespaces_stage_bases - before namespaces_enter, as root: mount the directories of --roots where
 * the engine finds them (bases_open_staged). The caller gets a mount namespace of its own.
 */
int namespaces_stage_bases(const struct options *options, const struct ids *ids,
                           struct error *err) attr_must_check;
/** bases_open_staged - in the engine. */
int bases_open_staged(size_t count, struct bases *ret_bases, struct error *err) attr_must_check;

/* bridge_start.c */
/** bridge_start - start millibox-bridge, if configured, as root and in the host's network; sets
 * .bridge and .bridge_pid. */
int bridge_start(const struct options *options, struct host *host,
                 struct error *err) attr_must_check;

/* guard.c */
/** guard_engine - wait for @engine and remove what it cannot remove. Return: exit status. */
int guard_engine(struct host *host, pid_t engine);
