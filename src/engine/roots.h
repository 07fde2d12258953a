/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: boxes on roots other than the host's. */

#include "base/attr.h"
#include "base/error.h"
#include "engine/internal.h"
#include <stdbool.h>
#include <stddef.h>

int bases_open(const char *const *paths, size_t count, struct bases *ret_bases,
               struct error *err) attr_must_check;
void bases_close(struct bases *bases);
/** roots_build - make what boxes on a named root need below @stage. */
int roots_build(int stage, const struct ids *ids, const struct bases *bases,
                struct error *err) attr_must_check;
/** roots_work - whether overlayfs can be mounted. Call after template_enter(). */
bool roots_work(void);
/** roots_unmount - undo step_layers and step_packages in the engine, as @flags say; the box has its
 * own copy. */
void roots_unmount(uint32_t flags);
/** roots_mount - in the child: the layers at ROOT_LAYERED, the writable areas at ROOT_AREA. */
int roots_mount(const struct build *b, struct error *err) attr_must_check;
/** roots_protect - in the child: make the system directories below @root read-only. */
int roots_protect(int root, struct error *err) attr_must_check;
