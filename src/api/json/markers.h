/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: programs written for another control plane may print the value of their handler between two
 * lines. Anybody can print those, so nothing between them is believed (the value comes by the
 * report), but it is no output either. Pure.
 */

#include <stddef.h>

/**
 * markers_strip - @text without what stands between such lines, and without the lines. A begin
 * without an end is only itself left out. Return: owned; NULL: there are none.
 */
char *markers_strip(const char *text, size_t len, size_t *ret_len);
