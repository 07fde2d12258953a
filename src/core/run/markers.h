/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: programs for another control plane may print their handler's value between two marker lines.
 * Any program can, so the text between them is dropped (the value comes with the report). Pure.
 */

#include <stddef.h>

/** markers_strip - of a start without an end only the line. Return: owned; NULL: no markers. */
char *markers_strip(const char *text, size_t len, size_t *ret_len);
