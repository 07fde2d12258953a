/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/engines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/config/yamldoc.h"
#include "driver/box_spec.h"

static_assert(ENGINE_NAME_LEN == BOX_ENGINE_LEN, "names are passed through");

#define BINARY   "binary"
#define LIST_LEN 256

static const struct engine_runtime runtimes[] = {
	{ENGINE_NATIVE, "millibox-engine", NULL, "", {NULL}},
	{"bwrap", "millibox-oci", "bwrap", "apt-get install bubblewrap", {BINARY}},
	{"runc", "millibox-oci", "runc", "apt-get install runc", {BINARY}},
	{"crun", "millibox-oci", "crun", "apt-get install crun", {BINARY}},
	{"gvisor", "millibox-oci", "runsc", "apt-get install runsc", {BINARY}},
	{"docker",
         "millibox-remote",
         "docker",
         "apt-get install docker.io",
         {"socket", "image", "container-runtime"}},
};

const struct engine_runtime *engine_runtime_at(size_t index)
{
	return index < ARRAY_SIZE(runtimes) ? &runtimes[index] : NULL;
}

const struct engine_runtime *engine_runtime_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		if (str_equal(runtimes[i].name, name))
			return &runtimes[i];
	return NULL;
}

static bool is_word(const char *text)
{
	return text[0] >= 'a' && text[0] <= 'z' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

bool engine_is_name(const char *name)
{
	return strlen(name) < ENGINE_NAME_LEN && is_word(name) && !str_equal(name, ENGINE_AUTO);
}

static int add_pair(const struct yamldoc_node *n, const char *where, struct buf *to,
                    struct error *err)
{
	if (n->kind != YAMLDOC_SCALAR || !n->value[0] || strpbrk(n->value, ", "))
		return error_set(err, ERR_CONFIG, 0,
		                 "%s: 'engines': '%s' must be a value without spaces and commas",
		                 where, n->key);
	return buf_addf(to, " %s=%s", n->key, n->value) < 0
	               ? error_set(err, ERR_CONFIG, 0, "%s: 'engines' is too long", where)
	               : 0;
}

/* "NAME=RUNTIME KEY=VALUE ...". */
static int join_engine(const struct yamldoc_node *engine, const char *where, struct buf *to,
                       struct error *err)
{
	const char *runtime = engine->key;
	bool is_empty = engine->kind == YAMLDOC_SCALAR && !engine->value[0];

	if (engine->kind != YAMLDOC_MAPPING && !is_empty)
		return error_set(err, ERR_CONFIG, 0, "%s: 'engines.%s' must be a mapping", where,
		                 engine->key);
	for (const struct yamldoc_node *n = engine->first; n; n = n->next)
		if (str_equal(n->key, "runtime") && n->kind == YAMLDOC_SCALAR)
			runtime = n->value;
	if (buf_addf(to, "%s%s=%s", to->len ? "," : "", engine->key, runtime) < 0)
		return error_set(err, ERR_CONFIG, 0, "%s: 'engines' is too long", where);
	for (const struct yamldoc_node *n = engine->first; n; n = n->next)
		if (!str_equal(n->key, "runtime") && add_pair(n, where, to, err) < 0)
			return -1;
	return 0;
}

int engines_join(const struct yamldoc_node *node, const char *where, struct buf *ret_text,
                 struct error *err)
{
	for (const struct yamldoc_node *n = node->first; n; n = n->next)
		if (join_engine(n, where, ret_text, err) < 0)
			return -1;
	return 0;
}

static void engine_free(struct config_engine *e)
{
	free(e->name);
	free(e->binary);
	str_list_free(e->words);
	free(e);
}

void engines_done(struct config *c)
{
	for (struct config_engine **e = c->engine_list; e && *e; e++)
		engine_free(*e);
	free(TAKE_PTR(c->engine_list));
}

const struct config_engine *engines_find(const struct config *c, const char *name)
{
	for (struct config_engine **e = c->engine_list; e && *e; e++)
		if (str_equal((*e)->name, name))
			return *e;
	return NULL;
}

static int refuse_runtime(const char *name, const char *runtime, struct error *err)
{
	char known[120] = "";
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "",
		                      runtimes[i].name);
	return error_set(err, ERR_CONFIG, 0,
	                 "engines: '%.31s': there is no runtime '%.31s'; known: %s", name, runtime,
	                 known);
}

/* Other words are options of the engine that the daemon sets: a directory of roots, an id. */
static int refuse_key(const struct config_engine *e, const char *key, struct error *err)
{
	cleanup_buf struct buf known = BUF_INIT(LIST_LEN);

	for (const char *const *word = e->runtime->words; *word; word++)
		(void)!buf_addf(&known, "%s%s", known.len ? ", " : "; known: ", *word);
	return error_set(err, ERR_CONFIG, 0, "engines: '%s': runtime '%s' has no word '%.40s'%s",
	                 e->name, e->runtime->name, key, known.data ? known.data : "");
}

static bool is_known(const struct engine_runtime *runtime, const char *key)
{
	const char *const *word = runtime->words;

	while (*word && !str_equal(*word, key))
		word++;
	return *word;
}

/* "binary=/path", or a word for the command line. */
static int take_pair(struct config_engine *e, const char *pair, size_t *count, struct error *err)
{
	const char *equals = strchr(pair, '=');
	cleanup_free char *key = equals ? xstrndup(pair, (size_t)(equals - pair)) : xstrdup(pair);

	if (!equals || !equals[1] || !is_word(key))
		return error_set(err, ERR_CONFIG, 0, "engines: '%s': '%.60s' must be KEY=VALUE",
		                 e->name, pair);
	if (!is_known(e->runtime, key))
		return refuse_key(e, key, err);
	if (str_equal(key, BINARY)) {
		if (equals[1] != '/')
			return error_set(err, ERR_CONFIG, 0,
			                 "engines: '%s': binary must be an absolute path", e->name);
		free(e->binary);
		e->binary = xstrdup(equals + 1);
		return 0;
	}
	if (*count == (size_t)ENGINE_WORDS_MAX)
		return error_set(err, ERR_CONFIG, 0, "engines: '%s': at most %d words", e->name,
		                 ENGINE_WORDS_MAX);
	e->words[2 * *count] = xasprintf("--%s", key);
	e->words[2 * *count + 1] = xstrdup(equals + 1);
	++*count;
	return 0;
}

static int take_engine(struct config_engine *e, const char *item, struct error *err)
{
	cleanup_free char *text = xstrdup(item);
	char *rest = NULL, *head = strtok_r(text, " ", &rest), *pair;
	char *equals = strchr(head, '=');
	size_t count = 0;

	if (equals)
		*equals = '\0';
	if (!engine_is_name(head))
		return error_set(err, ERR_CONFIG, 0,
		                 "engines: '%.60s' is not a name: 1 to 31 of a-z 0-9 -, a letter "
		                 "first, and not '" ENGINE_AUTO "'",
		                 head);
	e->name = xstrdup(head);
	e->binary = xstrdup("");
	e->words = xcalloc(2 * ENGINE_WORDS_MAX + 1, sizeof(*e->words));
	e->runtime = engine_runtime_find(equals ? equals + 1 : head);
	if (!e->runtime)
		return refuse_runtime(head, equals ? equals + 1 : head, err);
	while ((pair = strtok_r(NULL, " ", &rest)))
		if (take_pair(e, pair, &count, err) < 0)
			return -1;
	return 0;
}

static int add_engine(struct config *c, size_t *count, const char *item, struct error *err)
{
	struct config_engine *e;

	if (*count == ENGINES_MAX)
		return error_set(err, ERR_CONFIG, 0, "engines: at most %d", ENGINES_MAX);
	e = NEW(struct config_engine);
	if (take_engine(e, item, err) == 0 && !engines_find(c, e->name)) {
		c->engine_list[(*count)++] = e;
		return 0;
	}
	if (!error_is_set(err))
		(void)error_set(err, ERR_CONFIG, 0, "engines: '%s' is there twice", e->name);
	engine_free(e);
	return -1;
}

int engines_settle(struct config *c, struct error *err)
{
	size_t count = 0;
	bool is_there = false;

	c->engine_list = xcalloc(ENGINES_MAX + 1, sizeof(struct config_engine *));
	for (char **item = c->engines; *item; item++) {
		size_t len = strcspn(*item, "= ");

		is_there |= strlen(c->engine) == len && memcmp(*item, c->engine, len) == 0;
	}
	/* A default that is a runtime's name needs no entry. */
	if (!is_there && add_engine(c, &count, c->engine, err) < 0)
		return error_wrap(err, "engine");
	for (char **item = c->engines; *item; item++)
		if (add_engine(c, &count, *item, err) < 0)
			return -1;
	return 0;
}
