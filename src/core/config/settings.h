/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the table of settings: type, place in struct config, default, range and help text of each
 * key. config.c knows where values come from. Pure.
 */

#include "base/attr.h"
#include "core/config/config.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum setting_type {
	SETTING_TEXT,
	SETTING_PATH, /* absolute, or "" */
	SETTING_ADDR, /* numeric host and port, or "" */
	SETTING_LIST,
	SETTING_BOOL,
	SETTING_UINT,
	SETTING_SIZE,
	SETTING_DURATION,
	SETTING_CPU,
	SETTING_LOG_LEVEL,
	SETTING_LOG_FORMAT,
	SETTING_ISOLATION,
	SETTING_GRADE,
	SETTING_PROFILE,
	SETTING_TYPE_COUNT
};

struct setting {
	const char *key;
	enum setting_type type;
	size_t offset;        /* in struct config */
	const char *fallback; /* NULL: see default_paths.h */
	uint64_t min, max;    /* numbers only */
	const char *help;
};

#define SETTING_ENV_PREFIX "MILLIBOX_"
#define SETTING_ENV_LEN    64
#define SETTING_WHY_LEN    160

size_t settings_count(void);
const struct setting *settings_at(size_t index);
const struct setting *settings_find(const char *key);
/** settings_find_env - find by environment variable, or NULL. */
const struct setting *settings_find_env(const char *name);
/** settings_suggest - the key probably meant by @key, or NULL. */
const char *settings_suggest(const char *key);
bool settings_has_group(const char *group);
/** setting_env - "MILLIBOX_LIMITS_TIMEOUT" into @ret_name. */
void setting_env(const struct setting *s, char ret_name[SETTING_ENV_LEN]);
/**
 * setting_set - parse @text into @c. Return: 0, or -EINVAL with @c unchanged and the end of a
 * sentence ("must be ...") in @ret_why.
 */
int setting_set(const struct setting *s, struct config *c, const char *text,
                char ret_why[SETTING_WHY_LEN]) attr_must_check;
/** setting_print - print YAML that setting_set reads back unchanged. */
void setting_print(const struct setting *s, const struct config *c, FILE *out);
/** setting_print_json - numbers, truth values and lists as such, all else as text. */
void setting_print_json(const struct setting *s, const struct config *c, FILE *out);
void setting_done(const struct setting *s, struct config *c);
