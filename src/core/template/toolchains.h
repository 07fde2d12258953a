/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: which languages work in a root, in boxes of one engine. Its files say whether the programs
 * of a language are there; a program of the language that ran in a box says whether they work
 * (core/run/language_check.h). Its verdict counts until something changes that it depends on: those
 * programs, or the list of the packages that are installed in the root. Without a verdict the files
 * decide.
 *
 * Lists, choices and refusals all ask here, so they agree. On the loop only.
 */

#include "base/attr.h"
#include "base/error.h"
#include "base/sha256.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runner;
struct template;
struct toolchains;

void toolchains_free(struct toolchains *all);
/** toolchains_new - @bases: as in struct template_host; borrowed, outlives it. */
struct toolchains *toolchains_new(const char *const *bases) attr_owned(toolchains_free);

/** toolchains_find - what is known of boxes of @engine; "": the default engine, which is @all.
 * Return: NULL: nothing. */
const struct toolchains *toolchains_find(const struct toolchains *all, const char *engine);
/** toolchains_get - the same, to learn. Owned by @all. */
struct toolchains *toolchains_get(struct toolchains *all, const char *engine);

/* Below, @t is a template, or NULL: the host's root. @all NULL: there are no verdicts. */

/** toolchains_has - whether a request may use @r. */
bool toolchains_has(const struct toolchains *all, const struct template *t, const struct runner *r);
/** toolchains_require - ERR_NO_LANGUAGE, with the command that installs it. */
int toolchains_require(const struct toolchains *all, const struct template *t,
                       const struct runner *r, struct error *err) attr_must_check;

/* Borrowed until the next verdict. */
struct toolchain_view {
	bool is_there;       /* toolchains_has */
	bool is_checked;     /* a program has run; else only files were looked for */
	const char *missing; /* a path, or what the program said; NULL: is_there */
	const char *version; /* NULL: not known */
};
void toolchains_view(const struct toolchains *all, const struct template *t, const struct runner *r,
                     struct toolchain_view *ret_view);

/* For core/run/language_check.c. */

typedef void toolchains_refusal_fn(void *ctx, const char *engine, const struct template *t,
                                   const struct runner *r);

enum toolchain_state {
	TOOLCHAIN_UNKNOWN,   /* the box could not say it */
	TOOLCHAIN_UNCHECKED, /* no program of it was run: only its version was asked */
	TOOLCHAIN_WORKS,
	TOOLCHAIN_FAILS
};

struct toolchain_key {
	uint8_t digest[SHA256_LEN];
};

struct toolchain_verdict {
	struct toolchain_key key; /* of what was checked */
	enum toolchain_state state;
	const char *reason;  /* FAILS: text of one line; copied */
	const char *version; /* NULL: not known; copied */
};

/** toolchains_is_due - whether @r has its files, and nothing useful is known about it; or, with
 * @again, whatever is known. */
bool toolchains_is_due(const struct toolchains *all, const struct template *t,
                       const struct runner *r, bool again);
/** toolchains_on_refusal - call @fn when a request was refused by an old verdict, which may be
 * wrong by now. At most one; NULL: none. */
void toolchains_on_refusal(struct toolchains *all, toolchains_refusal_fn *fn, void *ctx);
/** toolchains_key - of what is there now. */
void toolchains_key(const struct toolchains *all, const struct template *t, const struct runner *r,
                    struct toolchain_key *ret_key);
void toolchains_learn(struct toolchains *all, const struct template *t, const struct runner *r,
                      const struct toolchain_verdict *verdict);
