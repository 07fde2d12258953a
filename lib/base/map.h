/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: hash map from string to pointer. Keys are copied, values borrowed and never NULL.
 * SipHash-1-3 with a random key per map: a caller who chooses ids cannot choose collisions.
 */

#include "base/attr.h"
#include <stddef.h>

struct map;

void map_free(struct map *m);
struct map *map_new(void) attr_owned(map_free);
void *map_get(const struct map *m, const char *key);
/** map_put - Return: 0, or -EEXIST with nothing changed. */
int map_put(struct map *m, const char *key, void *value) attr_must_check;
/** map_remove - Return: the value, or NULL. */
void *map_remove(struct map *m, const char *key);
size_t map_count(const struct map *m);
/** map_next - start with *pos = 0; NULL at the end. No changes while iterating. */
void *map_next(const struct map *m, size_t *pos, const char **ret_key);
