/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: templates in the store. A failed write is undone; see templates_done. */

#include "base/attr.h"
#include "base/error.h"

struct store;
struct template_spec;
struct templates;

/**
 * template_row_keep - load all templates, and persist changes from now on. Before store_start. A
 * template that cannot be loaded is logged and stays in the store.
 */
int template_row_keep(struct store *store, struct templates *all,
                      struct error *err) attr_must_check;

/* A spec without its id, for sessions that remember their template. */

/** template_row_write_spec - JSON. Return: owned. */
char *template_row_write_spec(const struct template_spec *spec) attr_must_check;
/** template_row_read_spec - fields missing in @text stay unchanged. */
void template_row_read_spec(const char *text, struct template_spec *ret_spec);
