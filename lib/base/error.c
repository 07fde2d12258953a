/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#undef error_set
#undef error_field
#undef error_wrap
#undef error_retry
#undef error_later
#undef error_stopping

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

#define RETRY_MAX_S 3600
#define RESTART_US  (2 * USEC_PER_SEC) /* about what the restart of the daemon takes */

/*
 * May run between clone and exec: uses only the stack and vsnprintf, which for these conversions
 * (%s %d %u %x) neither allocates nor locks in either C library.
 */

static const struct {
	const char *name, *text, *description, *solution;
	int http, jsonrpc;
} codes[] = {
#define ERROR_CODE(name_, http_, jsonrpc_, text_, description_, solution_)                         \
	[ERR_##name_] = {.name = #name_,                                                           \
	                 .text = text_,                                                            \
	                 .description = description_,                                              \
	                 .solution = solution_,                                                    \
	                 .http = http_,                                                            \
	                 .jsonrpc = jsonrpc_},
#include "base/error_codes.def"
#undef ERROR_CODE
};
static_assert(ARRAY_SIZE(codes) == ERR_COUNT, "every code has a row");

/* Truncate between characters: the text goes into JSON. */
static attr_printf(3, 0) void format_cut(char *dst, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(dst, size, fmt, ap);

	if (n < 0)
		dst[0] = '\0';
	else if ((size_t)n >= size)
		dst[utf8_cut(dst, size - 1)] = '\0';
}

static attr_printf(3, 4) void set_text(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	format_cut(dst, size, fmt, ap);
	va_end(ap);
}

int error_set(struct error *err, enum error_code code, int sys, const char *fmt, ...)
{
	va_list ap;

	assert(!error_is_set(err) && code != ERR_NONE);
	err->code = code;
	err->sys = sys;
	err->retry_s = 0;
	err->field[0] = '\0';
	va_start(ap, fmt);
	format_cut(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -1;
}

int error_field(struct error *err, const char *field, const char *fmt, ...)
{
	va_list ap;

	assert(!error_is_set(err));
	err->code = ERR_INVALID;
	err->sys = 0;
	err->retry_s = 0;
	set_text(err->field, sizeof(err->field), "%s", field);
	va_start(ap, fmt);
	format_cut(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -1;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	va_list ap;

	assert(error_is_set(err));
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	format_cut(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);

	size_t used = strlen(err->msg);
	set_text(err->msg + used, sizeof(err->msg) - used, ": %s", inner);
	return -1;
}

/* Whole seconds, rounded up: an early repetition would be refused again. */
int error_retry(struct error *err, uint64_t wait_us)
{
	uint64_t seconds = wait_us / USEC_PER_SEC + (wait_us % USEC_PER_SEC > 0);

	assert(error_is_set(err));
	err->retry_s = seconds > RETRY_MAX_S ? RETRY_MAX_S : (unsigned)seconds;
	err->retry_s += err->retry_s == 0;
	return -1;
}

int error_later(struct error *err, enum error_code code, uint64_t wait_us, const char *fmt, ...)
{
	va_list ap;

	assert(!error_is_set(err) && code != ERR_NONE);
	*err = (struct error){.code = code};
	va_start(ap, fmt);
	format_cut(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return error_retry(err, wait_us);
}

int error_stopping(struct error *err)
{
	return error_later(err, ERR_UNAVAILABLE, RESTART_US, "the daemon is stopping");
}

void error_clear(struct error *err)
{
	*err = (struct error){.code = ERR_NONE};
}

/* An unknown code from a pipe is an internal error. */
static size_t row_of(enum error_code code)
{
	return (unsigned)code < ERR_COUNT ? (size_t)code : (size_t)ERR_SYSTEM;
}

const char *error_text(enum error_code code)
{
	return codes[row_of(code)].text;
}

const char *error_name(enum error_code code)
{
	return codes[row_of(code)].name;
}

const char *error_describe(enum error_code code)
{
	return codes[row_of(code)].description;
}

const char *error_solution(enum error_code code)
{
	return codes[row_of(code)].solution;
}

int error_http(enum error_code code)
{
	return codes[row_of(code)].http;
}

bool error_is_internal(const struct error *err)
{
	return error_http(err->code) == 500 || err->code == ERR_BOX_FAILED ||
	       err->code == ERR_AGENT_LOST;
}

int error_jsonrpc(enum error_code code)
{
	return codes[row_of(code)].jsonrpc;
}
