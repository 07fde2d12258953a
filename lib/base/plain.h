/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: foreign text for a terminal: what it says can be read, and nothing of it controls the
 * terminal or hides what it says. */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>

/**
 * plain_add - append @data to @to with '?' for each control character, each mark that changes the
 * direction of text, and each invalid part of UTF-8. @keeps_layout: line ends and tabs stay; else
 * they become spaces. Return: 0 or -ENOBUFS.
 */
int plain_add(struct buf *to, const char *data, size_t len, bool keeps_layout) attr_must_check;
