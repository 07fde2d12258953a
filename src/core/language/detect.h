/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the language of code that names none, by the manifests: extension of its file, "#!" line,
 * then typical text. Only the beginning of the code is read. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

struct runner;
struct runners;

#define DETECT_CANDIDATES_MAX 5

struct detect_subject {
	const char *file_name; /* NULL: none */
	const char *code;
	size_t len;
};

struct detection {
	/* The most likely first. */
	const struct runner *candidates[DETECT_CANDIDATES_MAX];
	size_t count;
	bool is_sure; /* of the first */
};

void detect_language(const struct runners *all, const struct detect_subject *subject,
                     struct detection *ret_detection);
/** detect_stated - as detect_language, by extension and "#!" line only. */
void detect_stated(const struct runners *all, const struct detect_subject *subject,
                   struct detection *ret_detection);
