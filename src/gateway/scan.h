/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: checks JSON and finds members in it without building a tree: a message of 10 MiB needs no
 * more memory than its bytes, and what is passed on is what was received. Strict RFC 8259, UTF-8,
 * at most SCAN_DEPTH_MAX levels. Pure.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>

#define SCAN_DEPTH_MAX 64

enum scan_kind {
	SCAN_ABSENT,
	SCAN_NULL,
	SCAN_BOOL,
	SCAN_NUMBER,
	SCAN_STRING,
	SCAN_ARRAY,
	SCAN_OBJECT,
};

/* Part of the scanned text. */
struct scan_value {
	enum scan_kind kind;
	const char *at;
	size_t len;
};

/** scan_text - one value and nothing else. Return: 0, -EINVAL, or -E2BIG: too deep. */
int scan_text(const char *text, size_t len, struct scan_value *ret) attr_must_check;
/**
 * scan_members - of an object that scan_text found: those named in @names, of @count. Return: 0, or
 * -EINVAL if it is no object, or has one of them twice.
 */
int scan_members(const struct scan_value *object, const char *const *names, size_t count,
                 struct scan_value *ret) attr_must_check;
/** scan_next - iterate over an array that scan_text found; start with *pos = 0. */
bool scan_next(const struct scan_value *array, size_t *pos, struct scan_value *ret);
/** scan_string - decoded. Return: its length, -EINVAL: no string or has a NUL, -E2BIG. */
int scan_string(const struct scan_value *value, char *ret_text, size_t size) attr_must_check;
/** scan_number - Return: 0, or -EINVAL if it is no whole number of at most 9 digits. */
int scan_number(const struct scan_value *value, unsigned *ret) attr_must_check;
bool scan_is_true(const struct scan_value *value);
