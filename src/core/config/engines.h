/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the setting `engines`: which engines make boxes. An item is "NAME[=RUNTIME] [KEY=VALUE]...";
 * without a runtime the name is one. In the file it can be a mapping instead:
 *
 *     engines:
 *       native:
 *       gvisor: {binary: /usr/local/bin/runsc}
 *       docker: {socket: /run/podman/podman.sock}
 *       second: {runtime: native}
 *
 * `binary` is the runtime's own program; other keys are words for the engine's command line. Which
 * there are depends on the runtime.
 * Pure.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct config;
struct yamldoc_node;

#define ENGINES_MAX      16
#define ENGINE_WORDS_MAX 16
#define ENGINE_AUTO      "auto" /* in place of a name: the first that will do */
#define ENGINE_NATIVE    "native"
#define ENGINE_NAME_LEN  32 /* [a-z][a-z0-9-]{0,30} and NUL, as BOX_ENGINE_LEN */

/* What can make boxes, and the program of ours that has it do so. */
struct engine_runtime {
	const char *name;
	const char *program;  /* beside the daemon's engine */
	const char *word;     /* its --runtime; NULL: the program has but one */
	const char *install;  /* the command that installs it; "": nothing is needed */
	const char *words[4]; /* keys that the operator may set; NULL-terminated */
};

/** engine_runtime_find - NULL: there is none. */
const struct engine_runtime *engine_runtime_find(const char *name);
/** engine_runtime_at - NULL: past the end. */
const struct engine_runtime *engine_runtime_at(size_t index);

struct config_engine {
	char *name;
	const struct engine_runtime *runtime;
	char *binary; /* "": the runtime is found by its usual name */
	char **words; /* NULL-terminated: "--KEY", VALUE ... */
};

/** engine_is_name - may an engine be called that? */
bool engine_is_name(const char *name);
/** engines_join - the mapping @node as items, separated by commas. */
int engines_join(const struct yamldoc_node *node, const char *where, struct buf *ret_text,
                 struct error *err) attr_must_check;
/** engines_settle - from the settings `engines` and `engine`. The default is among them. */
int engines_settle(struct config *c, struct error *err) attr_must_check;
void engines_done(struct config *c);
/** engines_find - NULL: it is not configured. */
const struct config_engine *engines_find(const struct config *c, const char *name);
