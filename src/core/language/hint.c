/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/hint.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parse.h"
#include "base/str.h"

/* Code is untrusted: without these a line of one letter would take quadratic time. */
#define NAME_MAX_LEN 64
#define ANY_MAX      256

static const char *const field_names[] = {
	[HINT_NAME] = "{name}",
	[HINT_NUMBER] = "{number}",
	[HINT_ANY] = "{any}",
	[HINT_END] = "{end}",
};

/* {this|that}. Return: its length; 0: none begins here. */
static size_t choice_at(const char *text)
{
	size_t len = *text == '{' ? 1 + strcspn(text + 1, "{}") : 0;

	return len > 0 && text[len] == '}' && memchr(text, '|', len) ? len + 1 : 0;
}

/* HINT_TEXT: no field begins here. */
static enum hint_part_kind field_at(const char *text, size_t *ret_len)
{
	*ret_len = choice_at(text);
	if (*ret_len > 0)
		return HINT_ONE;
	for (size_t i = 0; i < ARRAY_SIZE(field_names); i++)
		if (field_names[i] && str_has_prefix(text, field_names[i])) {
			*ret_len = strlen(field_names[i]);
			return (enum hint_part_kind)i;
		}
	return HINT_TEXT;
}

static int add_part(struct hint *h, const char **text)
{
	struct hint_part *part = &h->parts[h->count];
	size_t len, next;

	if (h->count == HINT_PARTS_MAX)
		return -EINVAL;
	part->kind = field_at(*text, &len);
	while (part->kind == HINT_TEXT && (*text)[len] && field_at(*text + len, &next) == HINT_TEXT)
		len++;
	h->count++;
	if (part->kind == HINT_TEXT)
		part->text = xmemdup0(*text, len);
	else if (part->kind == HINT_ONE)
		part->text = xmemdup0(*text + 1, len - 2); /* without braces */
	part->len = part->text ? strlen(part->text) : 0;
	*text += len;
	return 0;
}

/* What the matcher relies on. */
static bool is_sound(const struct hint *h)
{
	if (h->count == 0 || (!h->at_start && h->parts[0].kind != HINT_TEXT))
		return false;
	for (size_t i = 0; i < h->count; i++) {
		bool is_last = i + 1 == h->count;

		if (h->parts[i].kind == HINT_ANY && (is_last || h->parts[i + 1].kind != HINT_TEXT))
			return false;
		if (h->parts[i].kind == HINT_END && !is_last)
			return false;
	}
	return true;
}

int hint_parse(const char *value, struct hint *ret_hint)
{
	const char *text = strchr(value, ' ');
	cleanup_free char *weight = text ? xmemdup0(value, (size_t)(text - value)) : NULL;
	uint64_t number;

	*ret_hint = (struct hint){0};
	if (!text || parse_u64(weight, &number) < 0 || number > HINT_WEIGHT_MAX)
		return -EINVAL;
	text++;
	ret_hint->weight = (unsigned)number;
	ret_hint->at_start = *text == '^';
	text += ret_hint->at_start;
	while (*text)
		if (add_part(ret_hint, &text) < 0)
			return -EINVAL;
	return is_sound(ret_hint) ? 0 : -EINVAL;
}

void hint_done(struct hint *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->parts[i].text);
	*h = (struct hint){0};
}

/* Return: length of the field at the beginning of @text; 0: it is not there. */
static size_t span_field(enum hint_part_kind kind, const char *text, size_t len)
{
	size_t n = 0;

	if (len > NAME_MAX_LEN)
		len = NAME_MAX_LEN;
	if (kind == HINT_NAME && len > 0 && isdigit((unsigned char)*text))
		return 0;
	while (n < len &&
	       (isdigit((unsigned char)text[n]) ||
	        (kind == HINT_NAME && (isalpha((unsigned char)text[n]) || text[n] == '_'))))
		n++;
	return n;
}

/* Past the text that ends "{any}"; NULL: it does not follow. @is_end: it is the line's. */
static const char *skip_any(const struct hint_part *until, bool is_end, const char *at,
                            const char *end)
{
	size_t left = (size_t)(end - at);
	const char *found;

	if (is_end)
		found = left >= until->len ? end - until->len : NULL;
	else
		found = memmem(at, left < ANY_MAX ? left : ANY_MAX, until->text, until->len);
	if (!found || memcmp(found, until->text, until->len) != 0 ||
	    memchr(at, ';', (size_t)(found - at)))
		return NULL;
	return found + until->len;
}

/* Past the first word of @part that @at begins with; NULL: none. */
static const char *skip_choice(const struct hint_part *part, const char *at, const char *end)
{
	for (const char *word = part->text;;) {
		size_t n = strcspn(word, "|");

		if (n <= (size_t)(end - at) && memcmp(word, at, n) == 0)
			return at + n;
		if (!word[n])
			return NULL;
		word += n + 1;
	}
}

static const char *skip_text(const struct hint_part *part, const char *at, const char *end)
{
	return part->len <= (size_t)(end - at) && memcmp(at, part->text, part->len) == 0
	               ? at + part->len
	               : NULL;
}

static const char *skip_field(enum hint_part_kind kind, const char *at, const char *end)
{
	size_t len = span_field(kind, at, (size_t)(end - at));

	return len > 0 ? at + len : NULL;
}

static bool match_at(const struct hint *h, const char *at, const char *end)
{
	for (size_t i = 0; at && i < h->count; i++) {
		const struct hint_part *part = &h->parts[i];

		switch (part->kind) {
		case HINT_TEXT:
			at = skip_text(part, at, end);
			break;
		case HINT_ONE:
			at = skip_choice(part, at, end);
			break;
		case HINT_ANY:
			i++; /* text follows */
			at = skip_any(&h->parts[i],
			              i + 1 < h->count && h->parts[i + 1].kind == HINT_END, at,
			              end);
			break;
		case HINT_END:
			return at == end;
		case HINT_NAME:
		case HINT_NUMBER:
			at = skip_field(part->kind, at, end);
		}
	}
	return at;
}

bool hint_matches(const struct hint *h, const char *text, size_t len)
{
	const struct hint_part *first = &h->parts[0];
	const char *end = text + len, *at = text;

	if (h->at_start)
		return match_at(h, text, end);
	while ((at = memmem(at, (size_t)(end - at), first->text, first->len))) {
		if (match_at(h, at, end))
			return true;
		at++;
	}
	return false;
}
