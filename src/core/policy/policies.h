/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: named policies: what a tenant may ask for. One YAML file each, NAME.yaml in the folder of
 * the setting policy.dir; `default`, `strict` and `permissive` are part of the program and a file
 * of the same name replaces them. docs/policies.md has every key.
 *
 * A struct policy is whole and immutable: what it extends is already laid under it, and every rule
 * remembers which file and line said it. It is shared, and counted: a session keeps the one it was
 * made under while a reload replaces the set. The set is read and checked whole before it is taken;
 * with any error the old one stays.
 *
 * One thread. Nothing here is looked at by anything but policy.c and those who show policies.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define POLICIES_MAX       64
#define POLICIES_CHAIN_MAX 8 /* policies that extend each other */
#define POLICIES_LIST_MAX  256
#define POLICY_ID_MAX      63 /* bytes of a policy's name */

/* Who says a rule. */
struct policy_source {
	const char *policy; /* of a policy in the chain, which lives as long */
	unsigned line;      /* 0: nobody says it */
};

struct policy_number {
	struct policy_source by;
	uint64_t value; /* words are numbers too: the place in the list of them */
};

struct policy_list {
	struct policy_source by;
	char **items; /* owned, NULL-terminated; NULL: nobody says it */
};

enum policy_exceed {
	POLICY_EXCEED_CLAMP, /* give the maximum */
	POLICY_EXCEED_REFUSE,
	POLICY_EXCEED_COUNT
};

enum policy_overflow {
	POLICY_OVERFLOW_TRUNCATE, /* keep what fits; the program goes on */
	POLICY_OVERFLOW_KILL,
	POLICY_OVERFLOW_COUNT
};

enum policy_min {
	POLICY_MIN_NONE,
	POLICY_MIN_STANDARD, /* what the driver demands of itself */
	POLICY_MIN_FULL,     /* every layer there is */
	POLICY_MIN_COUNT
};

enum policy_limit_id {
	POLICY_TIMEOUT,
	POLICY_MEMORY,
	POLICY_DISK,
	POLICY_CPU,
	POLICY_PROCESSES,
	POLICY_OUTPUT,
	POLICY_IDLE, /* of a session, as the next */
	POLICY_LIFETIME,
	POLICY_LIMIT_COUNT
};

struct policy_limit {
	struct policy_number fallback, max, on_exceed;
};

struct policy_filter {
	struct policy_list allow, deny; /* patterns; without allow everything is */
};

struct policy {
	unsigned refs;
	char *name;        /* owned, as all below */
	char *file;        /* where it was read; "built in" */
	char *description; /* NULL: none */
	char *extends;     /* NULL: nothing */
	unsigned extends_line;
	struct policy *parent; /* a reference; NULL: none */
	struct policy_limit limits[POLICY_LIMIT_COUNT];
	struct policy_number on_overflow;  /* enum policy_overflow */
	struct policy_number network_mode; /* enum box_network: the most, and what a box gets */
	struct policy_number isolation_min;
	struct policy_list network_allow;
	struct policy_list mounts;
	struct policy_list mcp_servers, mcp_tools;
	struct policy_list isolation_require; /* names of layers */
	struct policy_list session_modes;
	struct policy_filter languages, env, templates;
};

struct policy *policy_ref(const struct policy *policy);
void policy_unref(struct policy *policy);
static inline void policy_unrefp(struct policy **policy)
{
	policy_unref(*policy);
}

/* One key of a policy's file. */
struct policy_key;

/** policy_key_at - every key with a rule, in the order of the manual; NULL past the end. */
const struct policy_key *policy_key_at(size_t index);
/** policy_key_path - "limits.memory.max". */
const char *policy_key_path(const struct policy_key *key);
/** policy_key_help - what it is for, in a line. */
const char *policy_key_help(const struct policy_key *key);
/** policy_key_source - who says it in @policy; line 0: nobody. */
struct policy_source policy_key_source(const struct policy_key *key, const struct policy *policy);
/** policy_key_list - its items, or NULL where the key is no list or nobody says it. */
char *const *policy_key_list(const struct policy_key *key, const struct policy *policy);
/** policy_key_print - its value as the file would have it, of a key that is no list. */
void policy_key_print(const struct policy_key *key, const struct policy *policy, char *ret_text,
                      size_t size);

/**
 * policy_parse - one file's content, not yet with what it extends. @name is the file's name in
 * errors. Return: a reference, or NULL with *err (ERR_CONFIG, "FILE:LINE: ...").
 */
struct policy *policy_parse(const char *data, size_t len, const char *name,
                            struct error *err) attr_must_check;
/** policy_inherit - lay @parent under @policy; keeps a reference of it. */
void policy_inherit(struct policy *policy, const struct policy *parent);
/** policy_is_name - 1 to POLICY_ID_MAX of a-z 0-9 _ -, a letter or digit first. */
bool policy_is_name(const char *name);

struct policies;

struct policies_config {
	const char *dir;         /* "": those that are built in, and no others */
	const char *fallback;    /* for whoever has none; must exist */
	char *const *selectable; /* which a request may name; must exist. May be NULL: none */
	const char *const
		*files; /* further files, in place of those of the same name; may be NULL */
};

void policies_free(struct policies *p);
static inline void policies_freep(struct policies **p)
{
	policies_free(*p);
}
/** policies_load - @config is copied. Return: owned, or NULL with *err: file, line and reason. */
struct policies *policies_load(const struct policies_config *config, struct error *err)
	attr_owned(policies_free);
/** policies_reload - read all again. Return: 0, or -1 with *err and the old set in place. */
int policies_reload(struct policies *p, struct error *err) attr_must_check;
/** policies_find - borrowed until the next reload; NULL: none of this name. */
const struct policy *policies_find(const struct policies *p, const char *name);
/** policies_at - by name; NULL past the end. */
const struct policy *policies_at(const struct policies *p, size_t index);
const char *policies_default(const struct policies *p);
/** policies_can_select - whether a request may name @name, whoever asks. */
bool policies_can_select(const struct policies *p, const char *name);
