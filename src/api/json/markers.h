/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: programs written for another control plane may print the value of their handler between two
 * marker lines. Any program can print those, so the text between them is not trusted (the value
 * comes with the report) and is dropped from the output. Pure.
 */

#include <stddef.h>

/**
 * markers_strip - @text without marker lines and the text between them. Of a start without an end
 * only the line is dropped. Return: owned; NULL: no markers.
 */
char *markers_strip(const char *text, size_t len, size_t *ret_len);
