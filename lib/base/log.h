/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one line per event on stderr: key=value text, or JSON. The level is tested before
 * formatting; errno is preserved. Messages contain foreign values, so they are escaped and bounded.
 * User code, its input and output, and tokens are never logged.
 */

#include "base/attr.h"
#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERR,
	LOG_LEVEL_WARN, /* continuing; message ends ", ignoring" */
	LOG_LEVEL_INFO, /* lifecycle */
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_COUNT
};

enum log_format {
	LOG_FORMAT_TEXT,
	LOG_FORMAT_JSON,
	LOG_FORMAT_COUNT
};

struct error;

/** log_setup - @program must be a literal: it is kept. */
void log_setup(const char *program, enum log_level level, enum log_format format);
/** log_find_place - once, while the program may still look at its standard error. */
void log_find_place(void);
/** log_place - where lines go: the path of a file, "journal" or "terminal"; NULL: none of them. */
const char *log_place(void);
/** log_level_parse / log_format_parse - Return: the value or -EINVAL. */
int log_level_parse(const char *text);
int log_format_parse(const char *text);
const char *log_level_name(enum log_level level);
const char *log_format_name(enum log_format format);
bool log_is_on(enum log_level level);
/** log_write - @ctx is "key=value key=value" or NULL. */
void log_write(enum log_level level, const char *ctx, const char *fmt, ...) attr_printf(3, 4);

#define log_ctx(level, ctx, ...)                                                                   \
	do {                                                                                       \
		if (log_is_on(level))                                                              \
			log_write(level, ctx, __VA_ARGS__);                                        \
	} while (0)
#define log_err(...)   log_ctx(LOG_LEVEL_ERR, NULL, __VA_ARGS__)
#define log_warn(...)  log_ctx(LOG_LEVEL_WARN, NULL, __VA_ARGS__)
#define log_info(...)  log_ctx(LOG_LEVEL_INFO, NULL, __VA_ARGS__)
#define log_debug(...) log_ctx(LOG_LEVEL_DEBUG, NULL, __VA_ARGS__)
/** log_error - instead of returning it: "what: message (errno text)". */
void log_error(const char *what, const struct error *err);
void log_error_ctx(const char *ctx, const char *what, const struct error *err);
