/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what was applied to the box of a run: policies, filter, network, limits, versions. Most runs
 * have the same facts as one before them and share them. docs/receipts.md has the members.
 */

#include "base/attr.h"
#include "core/policy/policy.h"
#include "driver/driver.h"
#include <jansson.h>

struct facts {
	unsigned refs;
	json_t *object; /* owned; has every member */
	char *members;  /* owned: @object as text, without its braces */
};

/** facts_read - of a stored object; a member that it lacks is null. Return: a reference. */
struct facts *facts_read(const json_t *stored) attr_must_check;
void facts_unref(struct facts *facts);

/* Makes facts, and remembers the last ones. */
struct facts_maker;

/** facts_maker_new - Return: owned. */
struct facts_maker *facts_maker_new(void) attr_must_check;
void facts_maker_free(struct facts_maker *maker);
/** facts_make - @driver: who made its box, with @applied; @network: the most that the run had.
 * Return: a reference. */
struct facts *facts_make(struct facts_maker *maker, const struct policy_decision *decision,
                         const struct driver *driver, const struct box_spec *applied,
                         enum box_network network) attr_must_check;
