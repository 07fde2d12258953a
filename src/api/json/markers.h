/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: programs for another control plane may print the value of their handler between two marker
 * lines. Any program can print those: the text between them is not trusted (the value comes with
 * the report) and dropped. Pure.
 */

#include <stddef.h>

/** markers_strip - of a start without an end only the line is dropped. Return: owned; NULL: no
 * markers. */
char *markers_strip(const char *text, size_t len, size_t *ret_len);
