/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: layers of packages in the store. */

#include "base/error.h"

struct images;
struct layers;
struct store;

/** layer_row_keep - read the layers, and write their changes from now on. @store must outlive
 * @all. */
int layer_row_keep(struct store *store, struct layers *all, struct images *images,
                   struct error *err) attr_must_check;
/* Events of layers.h; @ctx: the store. */
struct layer;
void layer_row_put(void *ctx, const struct layer *layer);
void layer_row_delete(void *ctx, const struct layer *layer);
void layer_row_used(void *ctx, const struct layer *layer);
