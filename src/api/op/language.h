/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the language of a request that names none, for every dialect. */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>

struct decoded_run;
struct router;
struct runners;

/**
 * op_language_choose - Sets the language of @run unless it has one: what is certain, else
 * @fallback.
 * @fallback NULL: -1 with *err, which lists the candidates.
 */
int op_language_choose(const struct router *r, struct decoded_run *run, const char *fallback,
                       struct error *err) attr_must_check;
/** op_language_take_stated - as above, by file name and "#!" line only. Return: it has one. */
bool op_language_take_stated(const struct runners *all, struct decoded_run *run);
