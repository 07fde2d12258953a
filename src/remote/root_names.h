/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the names that every box needs, above its root, and those of the host that boxes without a
 * root of their own see. */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROOT_NAMES_MAX (192 * 1024)

/** root_names - append them to @b, as root_tar_add does. @first_uid: of REMOTE_BOXES_MAX. @is_host:
 * links such as /bin too, which are those of this host. */
int root_names(struct buf *b, uint32_t first_uid, bool is_host) attr_must_check;

/** root_names_has - whether @path, without a slash at its end, is one of those of every box. */
bool root_names_has(const char *path);

/** root_host_dirs - call @add for each path of the host that such boxes see, read-only. */
void root_host_dirs(void (*add)(void *ctx, const char *path), void *ctx);
