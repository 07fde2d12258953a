/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: templates in the database. What cannot be written is undone; see templates_done. */

#include "base/attr.h"
#include "base/error.h"

struct store;
struct template_spec;
struct templates;

/**
 * template_row_keep - load what there is into @all, and from now on keep what changes. Before the
 * store is started. One that fits nothing any more is logged and left where it is.
 */
int template_row_keep(struct store *store, struct templates *all,
                      struct error *err) attr_must_check;

/* What a template says, for those who remember what they were made of. Its id is not in it. */

/** template_row_write_spec - JSON. Return: owned. */
char *template_row_write_spec(const struct template_spec *spec) attr_must_check;
/** template_row_read_spec - what @text does not say stays as it is. */
void template_row_read_spec(const char *text, struct template_spec *ret_spec);
