/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: text that is typical for a language, from a manifest: "4 ^def ", "6 __name__",
 * "4 ^{name}() {". Fields stand for what varies; runners/README.md describes them. A line is
 * matched in time proportional to its length: fields are bounded and nothing backtracks. Pure.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

#define HINT_PARTS_MAX  12
#define HINT_WEIGHT_MAX 100

enum hint_part_kind {
	HINT_TEXT,
	HINT_NAME,   /* {name}: letters, digits and "_", not beginning with a digit */
	HINT_NUMBER, /* {number}: digits */
	HINT_ANY,    /* {any}: anything but ";" up to the text that follows */
	HINT_ONE,    /* {int|char|}: the first of these that fits; the last may be empty */
	HINT_END,    /* {end}: of the line */
};

struct hint_part {
	enum hint_part_kind kind;
	char *text; /* owned; of HINT_TEXT and HINT_ONE, else NULL */
	size_t len;
};

struct hint {
	struct hint_part parts[HINT_PARTS_MAX];
	size_t count;
	unsigned weight;
	bool at_start; /* of a statement */
};

/** hint_parse - Return: 0, or -EINVAL; in any case: hint_done. */
int hint_parse(const char *value, struct hint *ret_hint) attr_must_check;
void hint_done(struct hint *h);
/**
 * hint_matches - @text: of one line, without blanks at its ends and without literals (mask.h). It
 * begins with a statement if the hint asks for that.
 */
bool hint_matches(const struct hint *h, const char *text, size_t len);
