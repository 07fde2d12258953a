/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shortens long text for a model: keeps head and tail, and names the size and place of the
 * rest. Errors are mostly at the end, their subject at the beginning. Pure.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>

/**
 * shorten - append @text to @b; beyond @max bytes only head and tail, cut between lines if
 * possible, never inside a character. @where: how to read the whole, or NULL. Return: 1: shortened,
 * 0, or -ENOBUFS.
 */
int shorten(struct buf *b, const char *text, size_t len, size_t max,
            const char *where) attr_must_check;
