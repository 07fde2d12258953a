/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the table of runtimes. One row has everything that differs between them: where the program
 * is, how it says which it is, the words that start a box, what its boxes can have.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "engine/internal.h"
#include "engine/runtime.h"
#include "oci/spec.h"
#include <stdint.h>

/* Where enclose.c puts things, as the runtime sees them. */
#define PLACE_ROOT   "/run/root" /* the root of the box */
#define PLACE_BUNDLE "/run/bundle"
#define PLACE_STATE  "/run/state"
/* Descriptor of the description, for a runtime that reads it there. */
#define PLACE_DESCRIPTION_FD 6

#define RUNTIME_PATHS_MAX 3
#define RUNTIME_WORDS_MAX 32

/* A word of a command line; only for boxes with one of the flags, or without all of them. */
struct runtime_word {
	const char *text; /* NULL ends the list */
	uint32_t with, without;
};

struct runtime_row {
	struct runtime runtime; /* first: the engine knows only this */
	const char *alias;      /* another name for --runtime, or NULL */
	const char *paths[RUNTIME_PATHS_MAX];
	const char *package;
	const char *says; /* what precedes the version in the answer to --version */
	bool by_stdio;    /* passes no descriptor but the standard ones */
	bool needs_root;  /* its container has to have a root besides the payload */
	/* describe - Return: 0 or a negative errno. */
	int (*describe)(const struct spec *spec, struct buf *ret_text);
	const char *bundle_file; /* where the description goes; NULL: PLACE_DESCRIPTION_FD */
	struct runtime_word words[RUNTIME_WORDS_MAX];
};

/** runtime_find - Return: the row, or NULL. It is changed by its check(). */
struct runtime_row *runtime_find(const char *name);
/** runtime_row_of - of a host that has one. */
const struct runtime_row *runtime_row_of(const struct host *host);
/** runtime_names - "bwrap, runc, ..." */
void runtime_names(char *ret_text, size_t size);
/** runtime_command - the words of a box with @flags. @ret_argv has room for all and a NULL. */
void runtime_command(const struct runtime_row *row, uint32_t flags,
                     const char *ret_argv[RUNTIME_WORDS_MAX]);
