/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/language/options.h"
#include "core/language/runners.h"
#include "core/policy/policy_internal.h"
#include "core/template/template.h"

/*
 * Theory of operation. A command of a manifest becomes an argv word by word. A word may stand for
 * several (options, sources) or for one (paths); the caller's arguments follow.
 *
 * A compiler runs under runners/compile/build.sh, which makes its directory.
 */

#define RUNNERS_PATH "/opt/millibox/runners"
#define SOURCE_PATH  "/run/millibox"
#define ARTIFACT     "{artifact}"
#define BUILD_SCRIPT RUNNERS_PATH "/compile/build.sh"
/* Words of the script, see there. */
#define BUILD_WORDS 6

struct words {
	char **list;
	size_t count;
};

static void add_word(struct words *words, char *word)
{
	words->list[words->count++] = word;
}

static void add_words(struct words *words, char *const *more)
{
	for (; more && *more; more++)
		add_word(words, xstrdup(*more));
}

/* On the host the program may be at another of its places. */
static const char *place_of(const struct policy_command *c, const char *word)
{
	if (template_has_own_root(c->template))
		return template_program(c->template, word);
	return str_equal(word, c->runner->program) ? runner_place(c->runner) : NULL;
}

static char *expand_word(const struct policy_command *c, const char *word)
{
	const char *place = NULL;

	if (str_equal(word, "{source}"))
		return xasprintf("%s/%s", SOURCE_PATH, c->source);
	if (str_has_prefix(word, "{runner}"))
		return xasprintf("%s/%s%s", RUNNERS_PATH, c->runner->name,
		                 word + strlen("{runner}"));
	place = strstr(word, ARTIFACT);
	if (place)
		return xasprintf("%.*s%s/%s%s", (int)(place - word), word, POLICY_WORKSPACE,
		                 c->artifact ? c->artifact : "", place + strlen(ARTIFACT));
	if (*word == '/')
		place = place_of(c, word);
	return xstrdup(place ? place : word);
}

static bool has_extension(const struct runner *r, const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && str_list_has(r->extensions, dot + 1);
}

/* The code, and the request's files of the language; names were checked (FA-4), but one like an
 * option would be one. */
static void add_sources(struct words *words, const struct policy_command *c)
{
	add_word(words, xstrdup(c->runner->source));
	for (size_t i = 0; c->request && i < c->request->files_count; i++) {
		const char *name = c->request->files[i].name;

		if (has_extension(c->runner, name) && !str_equal(name, c->runner->source))
			add_word(words, xasprintf("./%s", name));
	}
}

/* Their largest number. */
static size_t count_words(const struct policy_command *c)
{
	return BUILD_WORDS + str_list_count(c->command) + OPTIONS_WORDS_MAX + 1 +
	       (c->request ? c->request->files_count : 0) + (c->args ? str_list_count(c->args) : 0);
}

static void add_build(struct words *words, const struct policy_command *c)
{
	add_word(words, xstrdup("/bin/sh"));
	add_word(words, xstrdup(BUILD_SCRIPT));
	add_word(words, xstrdup(c->compile == POLICY_COMPILE_SEND ? "send" : "keep"));
	add_word(words, xasprintf("%s/%s", SOURCE_PATH, c->source));
	add_word(words, xstrdup(c->runner->source));
	add_word(words, expand_word(c, ARTIFACT));
}

char **policy_argv(const struct policy_command *c)
{
	bool compiles = c->compile != POLICY_COMPILE_NOT;
	cleanup_str_list char **options = options_words(c->runner, c->options, compiles);
	const char *program =
		compiles ? NULL : options_of_type(c->runner, c->options, RUNNER_OPTION_PROGRAM);
	struct words words = {.list = xcalloc(count_words(c) + 1, sizeof(char *))};

	if (compiles)
		add_build(&words, c);
	for (size_t i = 0; c->command[i]; i++)
		if (i == 0 && program)
			add_word(&words, xstrdup(program));
		else if (str_equal(c->command[i], "{options}"))
			add_words(&words, options);
		else if (str_equal(c->command[i], "{sources}"))
			add_sources(&words, c);
		else
			add_word(&words, expand_word(c, c->command[i]));
	add_words(&words, c->args);
	return words.list;
}
