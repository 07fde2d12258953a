/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: long text for a reader who pays for every word: its head and its tail, and between them how
 * much was left out and where all of it is. Pure.
 */

#include "base/attr.h"
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>

/**
 * shorten - append @text to @b; of more than @max bytes only head and tail, cut between lines where
 * there are some, never inside a character. @where: what to say about the rest ("resource x"), or
 * NULL. Bytes that are no UTF-8 are passed on. Return: 1 if something was left out, 0, or -ENOBUFS.
 */
int shorten(struct buf *b, const char *text, size_t len, size_t max,
            const char *where) attr_must_check;
