/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a template says what boxes are made of: a root, variables, default limits, modules to
 * preload, packages that are there. One is never changed: an update makes a new one, and whoever
 * uses the old one keeps it (a reference) until he is done.
 *
 * Built-ins stand on the host's root, belong to nobody and are everybody's. See templates.h for the
 * table of all.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/tenant/principal.h"
#include "driver/box_spec.h"
#include <stdbool.h>
#include <stdint.h>

struct run_request;
struct image;
struct runner;

#define TEMPLATE_ID_MAX  64
#define TEMPLATE_DEFAULT "python-basic"
/* "image" of a template on the host's own root. */
#define TEMPLATE_HOST "host"

enum template_kind {
	TEMPLATE_ON_HOST,
	TEMPLATE_ON_DIRECTORY, /* of the operator */
	TEMPLATE_ON_IMAGE,     /* that was imported */
	TEMPLATE_ON_NOTHING,   /* what its image names is not here */
	TEMPLATE_KIND_COUNT
};

/* What a caller says about one. Owned; 0 or NULL: not said. */
struct template_spec {
	char *id, *name, *description;
	char *image;        /* TEMPLATE_HOST, a directory of templates.dirs, an imported template */
	char *base_image;   /* for people */
	char *runtime_type; /* for people */
	char *language;     /* of executions that name none */
	char *security_context;            /* JSON, kept for its owner: isolation is never less */
	char **packages, **preload, **env; /* NULL-terminated */
	uint64_t memory_bytes, disk_bytes, cpu_millicores, max_processes;
	uint64_t timeout_us; /* idle time-out of sessions */
};

void template_spec_done(struct template_spec *spec);
/** template_spec_fill - what @spec does not say, as @from has it; copied. */
void template_spec_fill(struct template_spec *spec, const struct template_spec *from);

struct template
{
	unsigned refs;
	char tenant[TENANT_NAME_MAX + 1]; /* "": a built-in */
	struct template_spec spec;
	enum template_kind kind;
	char root[BOX_ROOT_LEN]; /* "": the host's */
	struct image *image;     /* a reference; of TEMPLATE_ON_IMAGE, NULL of others */
	char **programs; /* NULL on the host; else pairs: as runners call it, where it is. Owned */
	char *problem;   /* owned; why it cannot be used, with the remedy; NULL: it can */
	char *config;    /* owned; JSON of the image: entrypoint, digest ...; NULL */
	uint64_t created_ms, updated_ms;
};

struct template *template_ref(struct template *t); /* NULL stays NULL */
void template_unref(struct template *t);
static inline void template_unrefp(struct template **t)
{
	template_unref(*t);
}
const char *template_kind_name(enum template_kind kind);
static inline bool template_is_builtin(const struct template *t)
{
	return !t->tenant[0];
}

/** template_program - where the program that a runner calls @path is; NULL: it is not there. */
const char *template_program(const struct template *t, const char *path);
/** template_command - of @r's commands the one that works on @t; NULL: none. @t NULL: the host. */
char *const *template_command(const struct template *t, const struct runner *r);
/** template_session_command - the same of a runner that stays. */
char *const *template_session_command(const struct template *t, const struct runner *r);
/** template_prepare_command - the same of a process that waits for its program. */
char *const *template_prepare_command(const struct template *t, const struct runner *r);

/** template_env_is_good - whether @variable of an image may be kept: as callers' are checked. */
bool template_env_is_good(const char *variable);
/** template_env - variables of @t that @own does not have, and @own; NULL: none at all. Owned. */
char **template_env(const struct template *t, char *const *own) attr_must_check;
