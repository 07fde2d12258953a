/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: templates in the database. What cannot be written is undone; see templates_done. */

#include "base/attr.h"
#include "base/error.h"

struct store;
struct templates;

/**
 * store_templates - load what there is into @all, and from now on keep what changes. Before the
 * store is started. One that fits nothing any more is logged and left where it is.
 */
int store_templates(struct store *store, struct templates *all, struct error *err) attr_must_check;
