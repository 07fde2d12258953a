/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the languages: one manifest per folder of runners/, read once at start. A runner turns
 * (code, arguments) into a source file and an argv; nothing else in core knows a language.
 *
 * manifest.yaml: name, aliases, title, source (file name of the code in /run/millibox), command
 * (argv; "{source}" and "{runner}" are replaced; arguments are appended), env (name: value),
 * program (absolute path that must exist), report (whether the runner reports result and error),
 * session_command (argv as command's, of a runner that stays and takes one piece of code after the
 * other; without it a session runs each as a program of its own), places (where else the program
 * may be in the root of a template), preload (session_command takes
 * modules of a template as arguments), prepare_command (argv of a process that waits for its
 * program, docs/protocol.md, "A prepared program"; where there is preload, modules of a template
 * follow it), zygote and session_zygote (files beside the manifest: how the engine makes zygotes
 * for command and session_command), minimal_command (the command in a root that has none of them).
 * Unknown keys are refused; name, title, source, command and program are required.
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
	char *zygote, *session_zygote; /* files: how zygotes for @command and @session_command are
	                                  made; NULL: none */
	bool report;
	bool preload;   /* its session_command takes modules of the template as arguments */
	bool asks;      /* takes run_request.ask */
	bool installed; /* @program is there */
};

void runners_free(struct runners *r);
struct runners *runners_load(const char *dir, struct error *err) attr_owned(runners_free);
/** runners_find - by name or alias, exact; NULL when unknown. */
const struct runner *runners_find(const struct runners *r, const char *language);
const struct runner *runners_at(const struct runners *r, size_t index); /* NULL past the end */
