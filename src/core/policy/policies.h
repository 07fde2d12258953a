/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: named policies: what a tenant may request. One YAML file each, NAME.yaml in policy.dir; a
 * file replaces a built-in (`default`, `strict`, `permissive`) of its name. docs/policies.md
 * documents every key.
 *
 * A struct policy is complete and immutable: it includes what it inherits, and every rule remembers
 * its file and line. Reference-counted: a session keeps its policy across reloads. A reload is
 * checked as a whole; on any error the old set stays. Single-threaded. Only policy.c and the code
 * that shows policies read it.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICIES_MAX       64
#define POLICIES_CHAIN_MAX 8 /* in an extends chain */
#define POLICIES_LIST_MAX  256
#define POLICY_ID_MAX      63 /* bytes */

struct policy_source {
	const char *policy; /* of a policy in the chain, which lives as long */
	unsigned line;      /* 0: no rule */
};

struct policy_number {
	struct policy_source by;
	uint64_t value; /* of words: index */
};

struct policy_list {
	struct policy_source by;
	char **items; /* owned, NULL-terminated; NULL: no rule */
};

enum policy_exceed {
	POLICY_EXCEED_CLAMP, /* grant the maximum */
	POLICY_EXCEED_REFUSE,
	POLICY_EXCEED_COUNT
};

enum policy_overflow {
	POLICY_OVERFLOW_TRUNCATE, /* the program continues */
	POLICY_OVERFLOW_KILL,
	POLICY_OVERFLOW_COUNT
};

enum policy_share {
	POLICY_SHARE_TENANT, /* within a tenant */
	POLICY_SHARE_ALL,    /* with tenants whose policy says the same */
	POLICY_SHARE_COUNT
};

enum policy_min {
	POLICY_MIN_NONE,
	POLICY_MIN_STANDARD, /* what the driver requires */
	POLICY_MIN_FULL,     /* every existing layer */
	POLICY_MIN_COUNT
};

enum policy_limit_id {
	POLICY_TIMEOUT,
	POLICY_MEMORY,
	POLICY_DISK,
	POLICY_CPU,
	POLICY_PROCESSES,
	POLICY_OUTPUT,
	POLICY_IDLE, /* session, like the next */
	POLICY_LIFETIME,
	POLICY_BACKGROUND, /* instead of POLICY_TIMEOUT, for what runs beside a session's queue */
	POLICY_LIMIT_COUNT
};

struct policy_limit {
	struct policy_number fallback, max, on_exceed;
};

struct policy_filter {
	struct policy_list allow, deny; /* patterns; no allow list: all allowed */
};

struct policy {
	unsigned refs;
	char *name;        /* owned, like all below */
	char *file;        /* path, or "built in" */
	char *description; /* NULL: none */
	char *extends;     /* NULL: nothing */
	unsigned extends_line;
	struct policy *parent; /* a reference; NULL: none */
	struct policy_limit limits[POLICY_LIMIT_COUNT];
	struct policy_number on_overflow;       /* enum policy_overflow */
	struct policy_number network_mode;      /* enum box_network: maximum and default */
	struct policy_number network_intercept; /* 1: TLS to hosts of secrets may be intercepted */
	struct policy_number isolation_min;
	struct policy_number min_isolation; /* enum box_grade */
	struct policy_list engines;         /* patterns; no list: all */
	struct policy_number share_builds;  /* enum policy_share */
	struct policy_list network_allow;
	struct policy_list network_request; /* what requests may name; "*": all but addresses */
	struct policy_list network_ranges;  /* of bridge.allow; no list: all */
	struct policy_list network_secrets; /* patterns of names; no list: none may be used */
	struct policy_list mounts;
	struct policy_list mcp_servers, mcp_tools;
	struct policy_list isolation_require; /* layers */
	struct policy_list session_modes;
	struct policy_filter languages, env, templates;
	char sha256[65];               /* of its rules, with what it inherits */
	struct policy_filter packages; /* managers */
	struct policy_number packages_timeout, packages_bytes;
};

struct policy *policy_ref(const struct policy *policy);
void policy_unref(struct policy *policy);
static inline void policy_unrefp(struct policy **policy)
{
	policy_unref(*policy);
}

struct policy_key;

/** policy_key_at - every key, in the order of the manual; NULL past the end. */
const struct policy_key *policy_key_at(size_t index);
/** policy_key_path - "limits.memory.max". */
const char *policy_key_path(const struct policy_key *key);
const char *policy_key_help(const struct policy_key *key);
/** policy_key_source - line 0: not set. */
struct policy_source policy_key_source(const struct policy_key *key, const struct policy *policy);
/** policy_key_list - NULL: not a list, or not set. */
char *const *policy_key_list(const struct policy_key *key, const struct policy *policy);
/** policy_key_print - as written in a file; not for lists. */
void policy_key_print(const struct policy_key *key, const struct policy *policy, char *ret_text,
                      size_t size);

/**
 * policy_parse - without inheritance. @name is the file's name in errors. Return: a reference, or
 * NULL with *err (ERR_CONFIG, "FILE:LINE: ...").
 */
struct policy *policy_parse(const char *data, size_t len, const char *name,
                            struct error *err) attr_must_check;
/** policy_inherit - take unset rules from @parent; keeps a reference to it. */
void policy_inherit(struct policy *policy, const struct policy *parent);
/** policy_is_name - 1 to POLICY_ID_MAX of a-z 0-9 _ -, a letter or digit first. */
bool policy_is_name(const char *name);

struct policies;

struct policies_config {
	const char *dir;          /* "": built-in only */
	const char *fallback;     /* must exist */
	char *const *selectable;  /* a request may name these; must exist. NULL: none */
	const char *const *files; /* additional, override others; may be NULL */
};

void policies_free(struct policies *p);
static inline void policies_freep(struct policies **p)
{
	policies_free(*p);
}
/** policies_load - @config is copied. Return: owned, or NULL with *err: file, line and reason. */
struct policies *policies_load(const struct policies_config *config, struct error *err)
	attr_owned(policies_free);
/** policies_reload - Return: 0, or -1 with *err and the old set kept. */
int policies_reload(struct policies *p, struct error *err) attr_must_check;
/** policies_find - borrowed until the next reload; may be NULL. */
const struct policy *policies_find(const struct policies *p, const char *name);
/** policies_at - sorted by name; NULL past the end. */
const struct policy *policies_at(const struct policies *p, size_t index);
const char *policies_default(const struct policies *p);
/** policies_can_select - whether requests may name it. */
bool policies_can_select(const struct policies *p, const char *name);
