/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a hint for a program that lacks a module which is beside it on this machine, but was not
 * copied into the box.
 */

#include "base/attr.h"
#include <jansson.h>
#include <stdbool.h>

/* Borrowed. */
struct neighbour_search {
	const char *program; /* its path; NULL or "-": none, then this directory counts */
	const json_t *error; /* of a result; may be NULL */
	bool has_dir;        /* the command has --dir */
};

/** neighbour_hint - Return: owned; NULL: it lacked something else. */
char *neighbour_hint(const struct neighbour_search *search) attr_must_check;
