/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the languages: one manifest per folder of runners/, read at start. A runner turns code and
 * arguments into files and an argv; nothing else in core knows a language. runners/README.md
 * describes every key of a manifest; manifest.c reads them.
 *
 * A compiled language has a compile_command, which makes one file, the artifact, that the command
 * runs (core/run/build.h).
 */

#include "base/error.h"
#include "core/language/hint.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runners;

#define RUNNERS_MAX  64
#define RUNNER_HELLO "hello"

/* Defaults of requests; 0: none. */
struct runner_limits {
	uint64_t timeout_us, memory_bytes, disk_bytes, max_processes;
};

enum runner_option_type {
	RUNNER_OPTION_TEXT,     /* one word without blanks or control characters */
	RUNNER_OPTION_WORDS,    /* words, separated by blanks */
	RUNNER_OPTION_BOOL,     /* true or false */
	RUNNER_OPTION_LANGUAGE, /* name of the language that runs the code instead */
	RUNNER_OPTION_PROGRAM,  /* path that replaces the first word of the command */
	RUNNER_OPTION_VERSION,  /* of the installed program, in as many parts as are given */
	RUNNER_OPTION_LANGUAGE_VERSION, /* at most that of the installed program */
	RUNNER_OPTION_TYPE_COUNT
};

/* Of a request's `options`. Strings are owned; NULL: none. */
struct runner_option {
	char *name;
	char *description;
	enum runner_option_type type;
	char **values;  /* allowed; NULL: any */
	char *fallback; /* value if not given */
	char **compile; /* words for "{options}" of the compile_command */
	char **run;     /* words for "{options}" of the command */
	char *before;   /* line in front of the code */
};

struct runner {
	size_t index; /* of runners_at */
	char *name;
	char **aliases;
	char *title;
	char *source;
	char *program;
	char **command;
	char **session_command; /* NULL: none */
	char **prepare_command; /* NULL: none */
	char **places;          /* NULL: none */
	char **needs;           /* NULL: none */
	char **minimal_command; /* NULL: none */
	char **env;
	char *zygote, *session_zygote; /* NULL: none */
	char **extensions;             /* NULL: none; without the dot */
	char **interpreters;           /* NULL: none; words of "#!" lines */
	char **commands;               /* NULL: none; words that begin a line */
	char *extends;                 /* NULL: none; its hints count too */
	struct hint *hints;            /* owned */
	size_t hints_count;
	char **version_command;        /* NULL: none */
	char **debian;                 /* packages that install it; NULL: none */
	char *install;                 /* what to do without these; NULL: unknown */
	char *hello;                   /* a program that prints RUNNER_HELLO; NULL: none */
	char *package_manager;         /* NULL: none */
	char *library;                 /* of its compiler, a package; NULL: none */
	char **compile_command;        /* NULL: not compiled */
	char *compile_if;              /* option; NULL: always. Else it makes nothing: a check */
	char **compile_env;            /* NULL: none */
	char **diagnostics;            /* NULL: none; forms of a compiler's messages */
	struct runner_option *options; /* owned */
	size_t options_count;
	struct runner_limits limits, compile_limits;
	unsigned time_percent; /* of the default time-out */
	bool report;
	bool preload;
	bool asks;
};

void runners_free(struct runners *r);
/** runners_load - @more: further folders, NULL-terminated; NULL: none. */
struct runners *runners_load(const char *dir, char *const *more, struct error *err)
	attr_owned(runners_free);
/** runners_find - by name or alias; NULL: unknown. */
const struct runner *runners_find(const struct runners *r, const char *language);
/** runner_missing - of its program and all it needs, what this host lacks now; NULL: nothing, but
 * they may not work (core/template/toolchains.h). */
const char *runner_missing(const struct runner *r);
/** runner_install_command - "apt-get install gcc libc6-dev", or what its manifest says. Return:
 * owned; NULL: unknown. */
char *runner_install_command(const struct runner *r) attr_must_check;
/** runner_place - where the program is on this host now: @program, or the first of @places that is
 * there; NULL: nowhere. */
const char *runner_place(const struct runner *r);
const struct runner *runners_at(const struct runners *r, size_t index); /* NULL past the end */
/** runner_find_option - NULL: none. */
const struct runner_option *runner_find_option(const struct runner *r, const char *name);
const char *runner_option_type_name(enum runner_option_type type);
