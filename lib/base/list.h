/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: intrusive doubly linked list. A node on no list points to itself. */

#include "base/attr.h"
#include <stdbool.h>

struct list {
	struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}

static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

static inline void list_append(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
#define LIST_FIRST(head, type, member)                                                             \
	(list_is_empty(head) ? NULL : LIST_ENTRY((head)->next, type, member))

/* The body may remove or free the current entry. */
#define LIST_FOREACH(entry, head, type, member)                                                    \
	for (struct list *node_ = (head)->next, *after_ = node_->next;                             \
	     node_ != (head) && ((entry) = LIST_ENTRY(node_, type, member));                       \
	     node_ = after_, after_ = node_->next)
