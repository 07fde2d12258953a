/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/diagnostics.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/*
 * Theory of operation. A form is literal text and fields. A field extends to the next place where
 * the literal text after it follows; {file} and {severity} try later places if the rest does not
 * match ("a:b.c:3: x"). Numbers are digits, so that few places are tried. Lines are cut to
 * LINE_MAX_BYTES: the cost is bounded.
 */

#define LINE_MAX_BYTES 2048
#define FIELDS_MAX     6
/* A field that tries later places only becomes longer: more is not tried, as output of a compiler
 * may be hostile. */
#define FILE_MAX_BYTES 400
#define WORD_MAX_BYTES 31 /* a severity or a code */
#define BUILD_DIR      "/tmp/millibox-build/"

enum field {
	FIELD_FILE,
	FIELD_LINE,
	FIELD_COLUMN,
	FIELD_SEVERITY,
	FIELD_CODE,
	FIELD_MESSAGE,
	FIELD_COUNT
};

static const char *const field_names[] = {
	[FIELD_FILE] = "{file}",         [FIELD_LINE] = "{line}", [FIELD_COLUMN] = "{column}",
	[FIELD_SEVERITY] = "{severity}", [FIELD_CODE] = "{code}", [FIELD_MESSAGE] = "{message}",
};
static_assert(ARRAY_SIZE(field_names) == FIELD_COUNT, "every field has a name");

struct slice {
	const char *text;
	size_t len;
};

struct match {
	struct slice fields[FIELD_COUNT];
};

/* Return: FIELD_COUNT: literal text begins here. */
static enum field field_at(const char *form)
{
	for (int i = 0; i < FIELD_COUNT; i++)
		if (str_has_prefix(form, field_names[i]))
			return (enum field)i;
	return FIELD_COUNT;
}

static size_t literal_len(const char *form)
{
	size_t len = 0;

	while (form[len] && field_at(form + len) == FIELD_COUNT)
		len++;
	return len;
}

static bool accepts(enum field field, struct slice value)
{
	if (value.len == 0)
		return false;
	if (field == FIELD_LINE || field == FIELD_COLUMN) {
		for (size_t i = 0; i < value.len; i++)
			if (!isdigit((unsigned char)value.text[i]))
				return false;
		return value.len < 8;
	}
	if (field == FIELD_SEVERITY || field == FIELD_CODE) {
		for (size_t i = 0; i < value.len; i++)
			if (!isalnum((unsigned char)value.text[i]) && value.text[i] != ' ')
				return false;
		return value.len <= WORD_MAX_BYTES;
	}
	return field != FIELD_FILE ||
	       (value.len <= FILE_MAX_BYTES && value.text[0] != ':' && value.text[0] != ' ');
}

/* Of a value whose end may be later; 0: it is at the first place, or nowhere. */
static size_t longest(enum field field)
{
	return field == FIELD_FILE ? FILE_MAX_BYTES : field == FIELD_SEVERITY ? WORD_MAX_BYTES : 0;
}

/* Bounded by FIELDS_MAX. */
// NOLINTNEXTLINE(misc-no-recursion)
static bool match_rest(const char *form, struct slice line, struct match *m)
{
	size_t len = literal_len(form);
	enum field field;
	const char *after;

	if (line.len < len || memcmp(line.text, form, len) != 0)
		return false;
	form += len;
	line = (struct slice){line.text + len, line.len - len};
	if (!*form)
		return line.len == 0;
	field = field_at(form);
	after = form + strlen(field_names[field]);
	len = literal_len(after);
	if (!*after) {
		m->fields[field] = line;
		return accepts(field, line);
	}
	for (const char *at = line.text; len > 0;) {
		const char *next = memmem(at, line.len - (size_t)(at - line.text), after, len);
		struct slice value;

		if (!next)
			return false;
		value = (struct slice){line.text, (size_t)(next - line.text)};
		m->fields[field] = value;
		if (accepts(field, value) &&
		    match_rest(after, (struct slice){next, line.len - value.len}, m))
			return true;
		if (value.len > longest(field))
			return false;
		at = next + 1;
	}
	return false;
}

static unsigned number_of(struct slice value)
{
	unsigned number = 0;

	for (size_t i = 0; i < value.len; i++)
		number = number * 10 + (unsigned)(value.text[i] - '0');
	return number;
}

/* Text of a result must be printable. */
static char *text_of(struct slice value)
{
	size_t len = value.len < DIAGNOSTICS_TEXT_MAX ? value.len : DIAGNOSTICS_TEXT_MAX;
	char *text = xmemdup0(value.text ? value.text : "", len);

	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	return text;
}

/* As the caller knows it. */
static char *file_of(struct slice value)
{
	static const char *const places[] = {BUILD_DIR, "/workspace/", "/run/millibox/", "./"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t len = strlen(places[i]);

		if (value.len > len && memcmp(value.text, places[i], len) == 0)
			value = (struct slice){value.text + len, value.len - len};
	}
	return text_of(value);
}

struct diagnostic *diagnostics_add(struct diagnostics *d)
{
	if (d->count == DIAGNOSTICS_MAX)
		return NULL;
	if (!d->list)
		d->list = xcalloc(DIAGNOSTICS_MAX, sizeof(*d->list));
	return &d->list[d->count++];
}

static void read_line(char *const *forms, struct slice line, struct diagnostics *d)
{
	struct diagnostic *one;

	for (; *forms; forms++) {
		struct match m = {0};

		if (!match_rest(*forms, line, &m))
			continue;
		one = diagnostics_add(d);
		if (!one)
			return;
		one->file = file_of(m.fields[FIELD_FILE]);
		one->line = number_of(m.fields[FIELD_LINE]);
		one->column = number_of(m.fields[FIELD_COLUMN]);
		one->severity = m.fields[FIELD_SEVERITY].len ? text_of(m.fields[FIELD_SEVERITY])
		                                             : xstrdup("error");
		one->code = text_of(m.fields[FIELD_CODE]);
		one->message = text_of(m.fields[FIELD_MESSAGE]);
		return;
	}
}

/* A line with only "^" shows the column of a message that has none. */
static bool read_caret(struct slice line, struct diagnostics *d)
{
	size_t column = 0;

	while (column < line.len && line.text[column] == ' ')
		column++;
	if (column + 1 != line.len || line.text[column] != '^')
		return false;
	if (d->count > 0 && d->list[d->count - 1].column == 0)
		d->list[d->count - 1].column = (unsigned)column + 1;
	return true;
}

void diagnostics_read(char *const *forms, const char *text, size_t len,
                      struct diagnostics *ret_diagnostics)
{
	const char *end = text + len;

	*ret_diagnostics = (struct diagnostics){0};
	while (forms && text < end && ret_diagnostics->count < DIAGNOSTICS_MAX) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		struct slice line = {text, (size_t)(stop - text)};

		if (line.len > 0 && line.len <= LINE_MAX_BYTES &&
		    !read_caret(line, ret_diagnostics))
			read_line(forms, line, ret_diagnostics);
		text = stop + 1;
	}
}

void diagnostics_done(struct diagnostics *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->list[i].file);
		free(d->list[i].severity);
		free(d->list[i].code);
		free(d->list[i].message);
	}
	free(d->list);
	*d = (struct diagnostics){0};
}
