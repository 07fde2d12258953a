/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a template describes boxes: root, variables, default limits, preloaded modules, required
 * packages. Immutable: an update creates a new one; users of the old one keep their reference.
 * Built-ins use the host's root and are visible to every tenant. See templates.h.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/tenant/principal.h"
#include "driver/box_spec.h"
#include <stdbool.h>
#include <stdint.h>

struct image;
struct manager;
struct runner;

#define TEMPLATE_ID_MAX  64
#define TEMPLATE_DEFAULT "python-basic"
#define TEMPLATE_HOST    "host"

enum template_kind {
	TEMPLATE_ON_HOST,
	TEMPLATE_ON_DIRECTORY, /* the operator's */
	TEMPLATE_ON_IMAGE,     /* imported */
	TEMPLATE_ON_NOTHING,   /* image missing */
	TEMPLATE_KIND_COUNT
};

enum template_choice {
	TEMPLATE_UNSAID,
	TEMPLATE_NO,
	TEMPLATE_YES
};

/* Owned; 0 or NULL: not set. */
struct template_spec {
	char *id, *name, *description;
	char *image;        /* TEMPLATE_HOST, a directory of templates.dirs, an imported template */
	char *base_image;   /* for people */
	char *runtime_type; /* for people */
	char *language;     /* of executions */
	char *engine;       /* name, or "auto" */
	char *min_isolation;               /* box_grade_name */
	char *security_context;            /* JSON, for its owner; never reduces isolation */
	char **packages, **preload, **env; /* NULL-terminated */
	char *manager;                     /* of the packages; NULL: the language's */
	char *lock;                        /* text of a lock file, instead of packages */
	char *run;                         /* script that ran after the installation */
	char *layer;              /* root with the installed packages (layers.h); NULL, "": none */
	uint64_t layer_bytes;     /* on disk */
	uint64_t system_packages; /* enum template_choice */
	uint64_t memory_bytes, disk_bytes, cpu_millicores, max_processes;
	uint64_t timeout_us; /* sessions' idle time-out */
};

/* Names as in the store. The first is the id. */
struct template_field {
	const char *name;
	size_t offset;
	enum {
		TEMPLATE_TEXT,
		TEMPLATE_LIST,
		TEMPLATE_NUMBER
	} kind;
};
#define TEMPLATE_FIELDS 24
extern const struct template_field template_fields[TEMPLATE_FIELDS];
static inline void *template_field_of(const struct template_spec *spec,
                                      const struct template_field *field)
{
	return (char *)(uintptr_t)spec + field->offset;
}

void template_spec_done(struct template_spec *spec);
/** template_spec_fill - copy what @spec does not set. */
void template_spec_fill(struct template_spec *spec, const struct template_spec *from);

struct template
{
	unsigned refs;
	char tenant[TENANT_NAME_MAX + 1]; /* "": a built-in */
	struct template_spec spec;
	enum template_kind kind;
	char root[BOX_ROOT_LEN]; /* "": the host's */
	struct image *image;     /* a reference; TEMPLATE_ON_IMAGE only */
	struct image *packages;  /* a reference: spec.layer; NULL: none */
	char **programs; /* owned pairs: runner's path, path in the root; NULL on the host */
	char *problem;   /* owned; why unusable, and the remedy; NULL: usable */
	uint64_t settled_us;
	char *config; /* owned; JSON of the image; NULL */
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

/** template_root_alone - @t without limits, packages and variables. Borrowed: it must not outlive
 * @t, and has no references. */
struct template template_root_alone(const struct template *t);
/** template_program - path in the root of a runner's program; NULL: not there. */
const char *template_program(const struct template *t, const char *path);
/** template_command - command of @r that works on @t; NULL: none. @t NULL: the host. */
char *const *template_command(const struct template *t, const struct runner *r);
char *const *template_session_command(const struct template *t, const struct runner *r);
char *const *template_prepare_command(const struct template *t, const struct runner *r);

/** template_has_own_root - false: its boxes have the host's, as those without a template. */
static inline bool template_has_own_root(const struct template *t)
{
	return t && t->programs;
}
/**
 * template_hides_host - whether programs in boxes of @t (NULL: the host's root) with packages of @m
 * find these alone, and not what the host has by chance. What an image has, its author chose.
 */
bool template_hides_host(const struct template *t, const struct manager *m);
/** template_runner_env - variables of @r's programs, and those by which they find the packages of
 * @t (may be NULL). Owned. */
char **template_runner_env(const struct template *t, const struct runner *r) attr_must_check;
/** template_env_is_good - the rules for callers apply to an image's variables. */
bool template_env_is_good(const char *variable);
/** template_env - @own, and variables of @t that it does not set; NULL: none. Owned. */
char **template_env(const struct template *t, char *const *own) attr_must_check;
