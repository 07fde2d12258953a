/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a YAML file as a small tree with line numbers (from 1), for the configuration, policies and
 * runner manifests. Rejects what operators do not need and attackers could use: anchors, aliases,
 * tags, several documents, keys that are not plain words, duplicate keys, deep nesting, more than
 * YAMLDOC_NODES_MAX nodes. Only yamldoc.c includes yaml.h;
 * docs/adr/0001-libyaml-instead-of-libcyaml.md says why not libcyaml.
 */

#include "base/buf.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

#define YAMLDOC_BYTES_MAX (256 * 1024)
#define YAMLDOC_DEPTH_MAX 8
#define YAMLDOC_NODES_MAX 1024

enum yamldoc_kind {
	YAMLDOC_SCALAR,
	YAMLDOC_LIST,
	YAMLDOC_MAPPING,
	YAMLDOC_KIND_COUNT
};

struct yamldoc_node {
	enum yamldoc_kind kind;
	char *key;                                         /* owned; NULL at the top and in lists */
	char *value;                                       /* owned; never NULL in scalars */
	bool quoted;                                       /* a quoted "" is a value */
	unsigned line;                                     /* of the key, if any */
	size_t count;                                      /* children */
	struct yamldoc_node *parent, *first, *last, *next; /* children are owned */
};

void yamldoc_free(struct yamldoc_node *root);
static inline void yamldoc_freep(struct yamldoc_node **root)
{
	yamldoc_free(*root);
}

/**
 * yamldoc_parse - @name is the file's name in errors. An empty document is an empty mapping.
 * Return: the top mapping, owned, or NULL with *err (ERR_CONFIG).
 */
struct yamldoc_node *yamldoc_parse(const char *data, size_t len, const char *name,
                                   struct error *err) attr_owned(yamldoc_free);
/** yamldoc_read - read a file; @ret_text bounds its size (YAMLDOC_BYTES_MAX). */
int yamldoc_read(const char *path, struct buf *ret_text, struct error *err) attr_must_check;
struct yamldoc_node *yamldoc_load(const char *path, struct error *err) attr_owned(yamldoc_free);
/** yamldoc_kind_name - "a value", "a list", "a mapping". */
const char *yamldoc_kind_name(enum yamldoc_kind kind);
