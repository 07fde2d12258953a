/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "base/utf8.h"

/*
 * A line is built on the stack and written with one write(2), so that lines of several processes do
 * not mix (PIPE_BUF is 4096). Bytes from outside cannot end a line, close a quoted value or control
 * a terminal.
 */

#define LINE_MAX_BYTES 4096
#define MSG_MAX_BYTES  1024
#define KEY_MAX_BYTES  64
#define CTX_MAX_BYTES  512
/* Reserved to close a truncated line. */
#define TAIL_BYTES 16

static struct {
	const char *program;
	enum log_level level;
	enum log_format format;
} settings = {.program = "millibox", .level = LOG_LEVEL_INFO, .format = LOG_FORMAT_TEXT};

static char place[PATH_MAX]; /* "": unknown */

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static_assert(ARRAY_SIZE(level_names) == LOG_LEVEL_COUNT, "every level has a name");
static const char *const format_names[] = {"text", "json"};
static_assert(ARRAY_SIZE(format_names) == LOG_FORMAT_COUNT, "every format has a name");

struct line {
	char text[LINE_MAX_BYTES];
	size_t len;
	unsigned pairs;
	bool cut;
	bool json;
};

void log_setup(const char *program, enum log_level level, enum log_format format)
{
	settings.program = program;
	settings.level = level;
	settings.format = format;
}

/* systemd says which socket is its journal's. */
static bool is_journal(const struct stat *st)
{
	const char *given = getenv("JOURNAL_STREAM");
	char own[64];

	(void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);
	return given && str_equal(given, own);
}

void log_find_place(void)
{
	struct stat st;
	ssize_t n = 0;

	if (fstat(STDERR_FILENO, &st) < 0)
		return;
	/* The path of a removed file would lead to another one. */
	if (S_ISREG(st.st_mode) && st.st_nlink > 0)
		n = readlink("/proc/self/fd/2", place, sizeof(place) - 1);
	else if (S_ISSOCK(st.st_mode) && is_journal(&st))
		n = snprintf(place, sizeof(place), "journal");
	else if (isatty(STDERR_FILENO))
		n = snprintf(place, sizeof(place), "terminal");
	place[n > 0 && (size_t)n < sizeof(place) - 1 ? n : 0] = '\0';
}

const char *log_place(void)
{
	return place[0] ? place : NULL;
}

static int index_of(const char *const *names, int count, const char *text)
{
	for (int i = 0; i < count; i++)
		if (str_equal(names[i], text))
			return i;
	return -EINVAL;
}

int log_level_parse(const char *text)
{
	return index_of(level_names, LOG_LEVEL_COUNT, text);
}

int log_format_parse(const char *text)
{
	return index_of(format_names, LOG_FORMAT_COUNT, text);
}

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

const char *log_format_name(enum log_format format)
{
	return format_names[format];
}

bool log_is_on(enum log_level level)
{
	return level <= settings.level;
}

/* All @len bytes or none; nothing after the first truncation. */
static void put_bytes(struct line *l, const char *data, size_t len)
{
	if (l->cut || len > sizeof(l->text) - TAIL_BYTES - l->len) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->len, data, len);
	l->len += len;
}

static void put_str(struct line *l, const char *s)
{
	put_bytes(l, s, strlen(s));
}

static void put_tail(struct line *l, const char *s)
{
	size_t len = strlen(s);

	assert(len <= sizeof(l->text) - l->len);
	memcpy(l->text + l->len, s, len);
	l->len += len;
}

/* C0 and C1 controls and DEL: C1 also starts terminal sequences. */
static bool is_control(const uint8_t *p, size_t len)
{
	return p[0] < 0x20 || p[0] == 0x7F || (len == 2 && p[0] == 0xC2 && p[1] < 0xA0);
}

static void put_escaped_char(struct line *l, const char *p, size_t len, bool valid)
{
	const uint8_t *u = (const uint8_t *)p;
	char text[8];

	if (!valid) {
		put_str(l, "\xEF\xBF\xBD");
	} else if (*p == '"' || *p == '\\') {
		put_bytes(l, (const char[]){'\\', *p}, 2);
	} else if (is_control(u, len)) {
		(void)snprintf(text, sizeof(text), "\\u%04x", len == 2 ? u[1] : u[0]);
		put_str(l, text);
	} else {
		put_bytes(l, p, len);
	}
}

static void put_escaped(struct line *l, const char *data, size_t len)
{
	for (size_t i = 0; i < len;) {
		bool valid;
		size_t n = utf8_next(data + i, len - i, &valid);

		put_escaped_char(l, data + i, n, valid);
		i += n;
	}
}

/* Text form: bare where unambiguous. */
static bool needs_quotes(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)data[i];

		if (c <= ' ' || c >= 0x7F || c == '"' || c == '\\' || c == '=')
			return true;
	}
	return len == 0;
}

/*
 * Of a context, in JSON: numbers and booleans, for programs that compare them. By key: ids are
 * chosen by callers, and a key must not change its type from line to line.
 */
static const char *const bare_keys[] = {"status", "duration_ms", "bytes", "complete"};

/* Digits, which may have a fraction: JSON allows no leading zero. */
static bool is_number(const char *s, size_t len)
{
	size_t whole = strspn(s, "0123456789"), digits;

	if (whole == 0 || whole > len || (s[0] == '0' && whole > 1))
		return false;
	if (whole == len)
		return true;
	digits = s[whole] == '.' ? strspn(s + whole + 1, "0123456789") : 0;
	return digits > 0 && whole + 1 + digits == len;
}

static bool is_bare(const char *key, const char *value, size_t len)
{
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(bare_keys); i++)
		known |= str_equal(bare_keys[i], key);
	return known && (is_number(value, len) || (len == 4 && memcmp(value, "true", 4) == 0) ||
	                 (len == 5 && memcmp(value, "false", 5) == 0));
}

/* Truncates a value that does not fit; drops a pair whose key does not. */
static void put_pair(struct line *l, const char *key, const char *value, size_t len)
{
	bool bare = l->json && is_bare(key, value, len);
	bool quotes = l->json ? !bare : needs_quotes(value, len);
	size_t start = l->len;

	if (l->pairs > 0)
		put_str(l, l->json ? "," : " ");
	put_str(l, l->json ? "\"" : "");
	put_escaped(l, key, strlen(key));
	put_str(l, l->json ? "\":" : "=");
	put_str(l, quotes ? "\"" : "");
	/* Whole or not at all: a number that is cut is another number. */
	if (bare)
		put_bytes(l, value, len);
	if (l->cut) {
		l->len = start;
		return;
	}
	l->pairs++;
	if (bare)
		return;
	put_escaped(l, value, len);
	if (l->cut)
		put_tail(l, "...");
	put_tail(l, quotes ? "\"" : "");
}

/* "key=value key=value"; drops words without "=". */
static void put_context(struct line *l, const char *ctx)
{
	char key[KEY_MAX_BYTES];

	for (const char *p = ctx + strspn(ctx, " "); *p; p += strspn(p, " ")) {
		size_t word = strcspn(p, " ");
		const char *equals = memchr(p, '=', word);

		if (equals && (size_t)(equals - p) < sizeof(key)) {
			size_t len = (size_t)(equals - p);

			memcpy(key, p, len);
			key[len] = '\0';
			put_pair(l, key, equals + 1, word - len - 1);
		}
		p += word;
	}
}

static void send_line(const struct line *l)
{
	ssize_t n;

	do
		n = write(STDERR_FILENO, l->text, l->len);
	while (n < 0 && errno == EINTR);
	/* There is nowhere to report a failure. */
}

static attr_printf(3, 0) size_t format_msg(char *msg, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(msg, size, fmt, ap);

	if (n < 0)
		return 0;
	if ((size_t)n < size)
		return (size_t)n;

	size_t len = utf8_cut(msg, size - sizeof("..."));
	memcpy(msg + len, "...", sizeof("..."));
	return len + 3;
}

static void put_head(struct line *l, enum log_level level)
{
	char when[sizeof("2026-11-15T04:19:36.123Z")];
	const char *name = (unsigned)level < LOG_LEVEL_COUNT ? level_names[level] : "?";

	clock_format_utc(clock_real_ms(), when, sizeof(when));
	put_pair(l, "time", when, strlen(when));
	put_pair(l, "level", name, strlen(name));
	put_pair(l, "program", settings.program, strlen(settings.program));
}

void log_write(enum log_level level, const char *ctx, const char *fmt, ...)
{
	struct line l = {.json = settings.format == LOG_FORMAT_JSON};
	char msg[MSG_MAX_BYTES];
	int saved = errno;
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	len = format_msg(msg, sizeof(msg), fmt, ap);
	va_end(ap);

	put_str(&l, l.json ? "{" : "");
	put_head(&l, level);
	if (ctx)
		put_context(&l, ctx);
	put_pair(&l, "msg", msg, len);
	put_tail(&l, l.json ? "}\n" : "\n");
	send_line(&l);
	errno = saved;
}

void log_error(const char *what, const struct error *err)
{
	log_error_ctx("", what, err);
}

void log_error_ctx(const char *ctx, const char *what, const struct error *err)
{
	char all[CTX_MAX_BYTES];
	int saved = errno;

	if (!log_is_on(LOG_LEVEL_ERR))
		return;
	(void)snprintf(all, sizeof(all), "error=%s %s", error_name(err->code), ctx);
	log_write(LOG_LEVEL_ERR, all, "%s: %s%s%s%s%s%s", what, err->field,
	          err->field[0] ? ": " : "", err->msg, err->sys ? " (" : "",
	          err->sys ? strerror(err->sys) : "", err->sys ? ")" : "");
	errno = saved;
}
