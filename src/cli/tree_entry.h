/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one file, directory or link below a directory, without following links. */

#include "base/attr.h"
#include <stdbool.h>
#include <sys/types.h>

#define TREE_PERMISSIONS 0777

/** tree_entry_mode - type and TREE_PERMISSIONS; 0: there is none, or it is of another type. */
mode_t tree_entry_mode(int root, const char *path);
/** tree_entry_same - whether both have the same type, permissions and content. */
bool tree_entry_same(int a, int b, const char *path);
/** tree_entry_link - where the link points. Return: owned, or NULL. */
char *tree_entry_link(int root, const char *path) attr_must_check;
/** tree_entry_parent - the directory that holds it. Return: fd, or a negative errno. */
int tree_entry_parent(int root, const char *path, const char **ret_name) attr_must_check;
