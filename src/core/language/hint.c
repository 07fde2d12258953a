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
	[HINT_TEXT] = "",     [HINT_NAME] = "{name}", [HINT_NUMBER] = "{number}",
	[HINT_ANY] = "{any}", [HINT_END] = "{end}",
};
static_assert(ARRAY_SIZE(field_names) == HINT_PART_COUNT, "every field has a name");

/* HINT_TEXT: no field begins here. */
static enum hint_part_kind field_at(const char *text)
{
	for (size_t i = HINT_NAME; i < HINT_PART_COUNT; i++)
		if (str_has_prefix(text, field_names[i]))
			return (enum hint_part_kind)i;
	return HINT_TEXT;
}

static int add_part(struct hint *h, const char **text)
{
	enum hint_part_kind kind = field_at(*text);
	struct hint_part *part = &h->parts[h->count];
	size_t len = strlen(field_names[kind]);

	if (h->count == HINT_PARTS_MAX)
		return -EINVAL;
	while (kind == HINT_TEXT && (*text)[len] && field_at(*text + len) == HINT_TEXT)
		len++;
	h->count++;
	part->kind = kind;
	part->len = kind == HINT_TEXT ? len : 0;
	part->text = kind == HINT_TEXT ? xmemdup0(*text, len) : NULL;
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
		return left >= until->len && memcmp(end - until->len, until->text, until->len) == 0
		               ? end
		               : NULL;
	found = memmem(at, left < ANY_MAX ? left : ANY_MAX, until->text, until->len);
	return found ? found + until->len : NULL;
}

static bool match_at(const struct hint *h, const char *at, const char *end)
{
	for (size_t i = 0; i < h->count; i++) {
		const struct hint_part *part = &h->parts[i];
		size_t left = (size_t)(end - at), len = part->len;

		if (part->kind == HINT_END)
			return left == 0;
		if (part->kind == HINT_ANY) {
			bool is_end = i + 2 < h->count && h->parts[i + 2].kind == HINT_END;

			at = skip_any(&h->parts[++i], is_end, at, end);
			if (!at)
				return false;
			continue;
		}
		if (part->kind != HINT_TEXT)
			len = span_field(part->kind, at, left);
		else if (left < len || memcmp(at, part->text, len) != 0)
			len = 0;
		if (len == 0)
			return false;
		at += len;
	}
	return true;
}

bool hint_matches(const struct hint *h, const char *line, size_t len)
{
	const struct hint_part *first = &h->parts[0];
	const char *end = line + len, *at = line;

	if (h->at_start)
		return match_at(h, line, end);
	while ((at = memmem(at, (size_t)(end - at), first->text, first->len))) {
		if (match_at(h, at, end))
			return true;
		at++;
	}
	return false;
}
