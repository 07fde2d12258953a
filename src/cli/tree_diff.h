/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what differs between two directory trees of ours, and taking it over into a third that other
 * programs use. Names, links and modes come from a box and are hostile: everything is done by
 * descriptors, follows no link and stays below the directory.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum tree_kind {
	TREE_ADDED,
	TREE_CHANGED,
	TREE_REMOVED
};

struct tree_change {
	enum tree_kind kind;
	char *path;       /* owned; relative, no "." and ".." */
	mode_t old_mode;  /* type and permissions; 0: it was not there */
	mode_t new_mode;  /* 0: it is gone */
	const char *risk; /* risky_path.h; NULL: none */
};

/* In an order that can be applied: a directory before what is in it, removals from the inside. */
struct tree_changes {
	struct tree_change *list; /* owned */
	size_t count;
};

/** tree_diff - between directories @before and @after. Return: 0, or -1 with *err. */
int tree_diff(int before, int after, struct tree_changes *ret_changes,
              struct error *err) attr_must_check;
void tree_changes_done(struct tree_changes *changes);
#define cleanup_tree_changes attr_cleanup(tree_changes_done)

/** tree_letter - 'A', 'M' or 'D'. */
char tree_letter(enum tree_kind kind);

/* What is applied only if it was asked for. */
struct tree_wishes {
	bool risky; /* what programs run by themselves */
	bool modes; /* all permissions; else new entries follow the umask, and of those that were
	             * there only the execute bits of files change */
};

/**
 * tree_apply - make @change in @target, if it is still there what it was in @before. Return: NULL,
 * or a literal reason: nothing was changed.
 */
const char *tree_apply(int target, int before, int after, const struct tree_change *change,
                       const struct tree_wishes *wishes) attr_must_check;
