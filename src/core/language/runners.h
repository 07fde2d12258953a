/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the languages: one manifest per folder of runners/, read at start. A runner turns code and
 * arguments into a source file and an argv; nothing else in core knows a language.
 *
 * manifest.yaml: name, aliases, title, source (name of the code file in /run/millibox), command
 * (argv; "{source}" and "{runner}" are replaced, arguments appended), env, program (absolute path
 * that must exist), report (the runner reports result and error), asks (supports run_request.ask),
 * session_command (argv of a runner that executes code repeatedly; without it a session starts a
 * program for each run), places (other paths of the program in a template's root), preload
 * (session_command accepts a template's modules as arguments), prepare_command (argv of a process
 * that waits for its program, docs/protocol.md, "A prepared program"; with preload, the modules
 * follow), zygote and session_zygote (files for the engine's zygotes), minimal_command (for a root
 * without the programs). Unknown keys are errors; name, title, source, command and program are
 * required.
 */

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct runners;

struct runner {
	char *name;
	char **aliases;
	char *title;
	char *source;
	char *program;
	char **command;
	char **session_command; /* NULL: none */
	char **prepare_command; /* NULL: none */
	char **places;          /* NULL: none */
	char **minimal_command; /* NULL: none */
	char **env;
	char *zygote, *session_zygote; /* NULL: none */
	bool report;
	bool preload;
	bool asks;
	bool installed; /* @program existed at start; see runner_is_installed */
};

void runners_free(struct runners *r);
struct runners *runners_load(const char *dir, struct error *err) attr_owned(runners_free);
/** runners_find - by name or alias; NULL: unknown. */
const struct runner *runners_find(const struct runners *r, const char *language);
/** runner_is_installed - it may have been installed after the start. */
bool runner_is_installed(const struct runner *r);
const struct runner *runners_at(const struct runners *r, size_t index); /* NULL past the end */
