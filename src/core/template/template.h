/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a template describes what boxes are made of: a root, variables, default limits, modules to
 * preload, required packages. Immutable: an update creates a new one, and users of the old one
 * keep a reference to it.
 *
 * Built-ins use the host's root and are visible to every tenant. templates.h has the table of
 * all.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/tenant/principal.h"
#include "driver/box_spec.h"
#include <stdbool.h>
#include <stdint.h>

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
	TEMPLATE_ON_NOTHING,   /* its image does not exist here */
	TEMPLATE_KIND_COUNT
};

/* A caller's description. Owned; 0 or NULL: not set. */
struct template_spec {
	char *id, *name, *description;
	char *image;        /* TEMPLATE_HOST, a directory of templates.dirs, an imported template */
	char *base_image;   /* for people */
	char *runtime_type; /* for people */
	char *language;     /* default of executions */
	char *security_context; /* JSON, stored for its owner; isolation is never reduced */
	char **packages, **preload, **env; /* NULL-terminated */
	uint64_t memory_bytes, disk_bytes, cpu_millicores, max_processes;
	uint64_t timeout_us; /* idle time-out of sessions */
};

/* The fields of a spec, with their names in a row of the store. The first is the id. */
struct template_field {
	const char *name;
	size_t offset;
	enum {
		TEMPLATE_TEXT,
		TEMPLATE_LIST,
		TEMPLATE_NUMBER
	} kind;
};
#define TEMPLATE_FIELDS 16
extern const struct template_field template_fields[TEMPLATE_FIELDS];
static inline void *template_field_of(const struct template_spec *spec,
                                      const struct template_field *field)
{
	return (char *)(uintptr_t)spec + field->offset;
}

void template_spec_done(struct template_spec *spec);
/** template_spec_fill - copy from @from what @spec does not set. */
void template_spec_fill(struct template_spec *spec, const struct template_spec *from);

struct template
{
	unsigned refs;
	char tenant[TENANT_NAME_MAX + 1]; /* "": a built-in */
	struct template_spec spec;
	enum template_kind kind;
	char root[BOX_ROOT_LEN]; /* "": the host's */
	struct image *image;     /* a reference; only for TEMPLATE_ON_IMAGE */
	char **programs; /* owned pairs: the runner's path, that in the root; NULL on the host */
	char *problem;   /* owned; why it is unusable, with the remedy; NULL: usable */
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

/** template_program - the path of the program that a runner calls @path; NULL: not in the root. */
const char *template_program(const struct template *t, const char *path);
/** template_command - the command of @r that works on @t; NULL: none. @t NULL: the host. */
char *const *template_command(const struct template *t, const struct runner *r);
/** template_session_command - the same for a runner that stays. */
char *const *template_session_command(const struct template *t, const struct runner *r);
/** template_prepare_command - the same for a process that waits for its program. */
char *const *template_prepare_command(const struct template *t, const struct runner *r);

/** template_env_is_good - whether to keep an image's @variable: the rules for callers apply. */
bool template_env_is_good(const char *variable);
/** template_env - the variables of @t that @own does not set, and @own; NULL: none. Owned. */
char **template_env(const struct template *t, char *const *own) attr_must_check;
