/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the parsed table of system calls. payload.txt explains its format. */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define RULES_MAX      768
#define CONDITIONS_MAX 3
#define NUMBERS_MAX    512 /* beyond the highest call */

enum action_kind {
	ACTION_ALLOW,
	ACTION_REFUSE,
	ACTION_ERRNO,
	ACTION_AGENT,
	ACTION_ZYGOTE,
	ACTION_UNCHARGED,
};

struct condition {
	unsigned arg;
	bool wide; /* all 64 bits */
	uint64_t mask;
	uint64_t value;
};

struct rule {
	int number;
	enum action_kind kind;
	uint32_t sys;    /* ACTION_ERRNO, ACTION_UNCHARGED */
	uint32_t answer; /* for compile.c: what the current program returns */
	unsigned count;
	struct condition conditions[CONDITIONS_MAX];
};

struct table {
	struct rule rules[RULES_MAX];
	unsigned count;
};

/** fail - in compile.c: report an error in @line (0: none) and exit. */
void fail(unsigned line, const char *fmt, ...) attr_noreturn attr_printf(2, 3);
/** table_read - exits on an obvious mistake. */
void table_read(FILE *f, struct table *table);
