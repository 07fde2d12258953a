/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a failed operation of ours. A struct error lives on the caller's stack, never allocates,
 * works between fork and exec, and can be sent through a pipe. How a program in a box ended is a
 * struct outcome, not an error.
 *
 * A function whose last parameter is a struct error returns >= 0, or -1 with *err filled exactly
 * once. An error is logged or returned, never both.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stdint.h>

enum error_code {
#define ERROR_CODE(name, http, jsonrpc, text, description, solution) ERR_##name,
#include "base/error_codes.def"
#undef ERROR_CODE
	ERR_COUNT
};

struct error {
	enum error_code code; /* stable: programs branch on it */
	int sys;              /* errno at the failing line, or 0 */
	unsigned retry_s;     /* see error_retry; 0: not set */
	char field[64];       /* path of the bad field ("resources.memory"), or "" */
	char msg[240];        /* outermost context first */
};

/** error_set - @err must be clear; @sys is a positive errno or 0. Return: always -1. */
int error_set(struct error *err, enum error_code code, int sys, const char *fmt, ...)
	attr_printf(4, 5);
/** error_field - error_set of ERR_INVALID for @field. Return: always -1. */
int error_field(struct error *err, const char *field, const char *fmt, ...) attr_printf(3, 4);
/** error_wrap - "context: message". Return: always -1. */
int error_wrap(struct error *err, const char *fmt, ...) attr_printf(2, 3);
/**
 * error_retry - nothing was begun, and what is missing becomes free by itself: the same request may
 * be sent again after @wait_us, which clients do. Not for what may have had an effect, nor for what
 * waits until its caller or the operator does something. Return: always -1.
 */
int error_retry(struct error *err, uint64_t wait_us);
/** error_later - error_set and error_retry. Return: always -1. */
int error_later(struct error *err, enum error_code code, uint64_t wait_us, const char *fmt, ...)
	attr_printf(4, 5);
#define ERROR_SOON_US 1000000 /* it is not known when something becomes free */
/** error_stopping - error_later for what comes while the daemon stops. Return: always -1. */
int error_stopping(struct error *err);
void error_clear(struct error *err);
static inline int error_is_set(const struct error *err)
{
	return err->code != ERR_NONE;
}

/* Columns of error_codes.def. */
const char *error_text(enum error_code code);
const char *error_name(enum error_code code);
const char *error_describe(enum error_code code);
const char *error_solution(enum error_code code);
int error_http(enum error_code code);
int error_jsonrpc(enum error_code code);
/**
 * error_is_internal - the daemon failed. The message names parts of the host: log it, do not show
 * it to the caller.
 */
bool error_is_internal(const struct error *err);

#if defined(__clang_analyzer__) || defined(GCC_ANALYZER)
/* An analyzer sees one file at a time: state the return value. */
#define error_set(...)      (error_set(__VA_ARGS__), -1)
#define error_field(...)    (error_field(__VA_ARGS__), -1)
#define error_wrap(...)     (error_wrap(__VA_ARGS__), -1)
#define error_retry(...)    (error_retry(__VA_ARGS__), -1)
#define error_later(...)    (error_later(__VA_ARGS__), -1)
#define error_stopping(err) (error_stopping(err), -1)
#endif
