/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: untrusted JSON. Depth and number of values are bounded before parsing: a parsed value takes
 * a hundred times its bytes. An error names the path ("resources.memory").
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include <jansson.h>
#include <stddef.h>

#define JSON_DEPTH_MAX  64
#define JSON_VALUES_MAX 50000

#define cleanup_json attr_cleanup(json_decrefp)

/** json_read - one object or array. Return: owned, or NULL with *err. */
json_t *json_read(const char *text, size_t len, struct error *err) attr_must_check;
/** json_read_object - one object. Return: owned, or NULL with *err. */
json_t *json_read_object(const char *text, size_t len, struct error *err) attr_must_check;
/** json_text - a string; invalid UTF-8 is replaced. Return: owned. */
json_t *json_text(const char *text, size_t len) attr_must_check;
/** json_set - json_object_set_new; fails only without memory. */
void json_set(json_t *object, const char *key, json_t *value);
void json_append(json_t *array, json_t *value);
/** json_add - compact text; @value is released. Return: 0 or -1: no room. */
int json_add(struct buf *b, json_t *value) attr_must_check;
/**
 * json_add_text - as a quoted string; invalid UTF-8 becomes U+FFFD. Return: 0 or -ENOBUFS: no room
 * for the worst case.
 */
int json_add_text(struct buf *b, const char *text, size_t len) attr_must_check;
/** json_write - compact text, owned; @value is released. */
char *json_write(json_t *value, size_t *ret_len) attr_must_check;
