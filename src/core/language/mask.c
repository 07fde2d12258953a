/* SPDX-License-Identifier: Apache-2.0 */
#include "core/language/mask.h"

#include <ctype.h>
#include <string.h>

#include "base/attr.h"

/*
 * Theory of operation. One pass: at a byte that may open a literal, its end is looked up; what has
 * none is code. An apostrophe in a word and the lifetimes of Rust open nothing. Looking for an end
 * that does not exist reads the whole rest, so it is done once per kind.
 */

enum end {
	END_DOUBLE,
	END_SINGLE,
	END_TRIPLE_DOUBLE,
	END_TRIPLE_SINGLE,
	END_BACKQUOTE,
	END_COMMENT,
	END_COUNT
};

static const char *const ends[END_COUNT] = {"\"", "'", "\"\"\"", "'''", "`", "*/"};

/* Each may be looked for to the end of the text. */
#define DOCUMENTS_MAX 8

struct masking {
	char *text;
	size_t len;
	bool is_cut;
	bool is_missing[END_COUNT]; /* none follows */
	unsigned documents;
};

static char char_at(const struct masking *m, size_t at)
{
	if (at < m->len)
		return m->text[at];
	return '\n';
}

static char char_before(const struct masking *m, size_t at)
{
	if (at > 0)
		return m->text[at - 1];
	return '\n';
}

static bool is_one_of(char c, const char *letters)
{
	return c && strchr(letters, c);
}

static bool is_blank(char c)
{
	return is_one_of(c, " \t\r");
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool has(const struct masking *m, size_t at, const char *what)
{
	size_t len = strlen(what);

	return at <= m->len && m->len - at >= len && memcmp(m->text + at, what, len) == 0;
}

static size_t end_of_line(const struct masking *m, size_t at)
{
	const char *end = at < m->len ? memchr(m->text + at, '\n', m->len - at) : NULL;

	return end ? (size_t)(end - m->text) : m->len;
}

static void hide(struct masking *m, size_t from, size_t to)
{
	for (; from < to; from++)
		if (m->text[from] != '\n')
			m->text[from] = MASK;
}

static void hide_words(struct masking *m, size_t from, size_t to)
{
	for (; from < to; from++)
		if (m->text[from] == '\\')
			from++;
		else if (is_word(m->text[from]) || is_one_of(m->text[from], " \t;"))
			m->text[from] = MASK;
}

/* Return: where @end begins, m->len if that is beyond the text, or 0: nowhere. */
static size_t find_end(struct masking *m, size_t from, enum end end)
{
	const char *found = NULL;

	if (!m->is_missing[end] && from < m->len)
		found = memmem(m->text + from, m->len - from, ends[end], strlen(ends[end]));
	m->is_missing[end] = !found;
	if (found)
		return (size_t)(found - m->text);
	return m->is_cut ? m->len : 0;
}

/* Several lines. Return: where to go on. */
static size_t hide_lines(struct masking *m, size_t from, enum end end)
{
	size_t to = find_end(m, from, end);

	if (to == 0)
		return from;
	hide(m, from, to);
	return to < m->len ? to + strlen(ends[end]) : m->len;
}

/* Nothing but blanks between the last letter of @after, or the beginning of the line, and @at. */
static bool follows(const struct masking *m, size_t at, const char *after)
{
	while (at > 0 && is_blank(m->text[at - 1]))
		at--;
	return char_before(m, at) == '\n' || is_one_of(char_before(m, at), after);
}

/* r'...', not don't. */
static bool is_prefix(const struct masking *m, size_t at)
{
	size_t first = at;

	while (first > 0 && at - first < 3 && is_word(m->text[first - 1]))
		first--;
	if (at - first > 2)
		return false;
	for (size_t i = first; i < at; i++)
		if (!is_one_of(m->text[i], "bBfFrRuU"))
			return false;
	return true;
}

static bool opens(const struct masking *m, size_t at)
{
	char before = char_before(m, at);

	if (m->text[at] == '"')
		return true;
	return is_word(before) ? is_prefix(m, at) : before != '&' && before != '<';
}

/* The quote that closes the one at @at in its line; 0: none. */
static size_t find_quote(const struct masking *m, size_t at)
{
	char quote = m->text[at];

	for (size_t i = at + 1; i < m->len && m->text[i] != '\n'; i++)
		if (m->text[i] == '\\')
			i++;
		else if (m->text[i] == quote)
			return i;
	return 0;
}

/* python3 -c '
 * print(1)' */
static bool takes_lines(const struct masking *m, size_t at)
{
	size_t next = at + 1;

	if (at >= 3 && (has(m, at - 3, "-c ") || has(m, at - 3, "-e ")))
		return true;
	while (is_blank(char_at(m, next)))
		next++;
	return char_at(m, next) == '\n';
}

static size_t pass_quote(struct masking *m, size_t at)
{
	bool is_double = m->text[at] == '"';
	size_t end;

	if (!opens(m, at))
		return at + 1;
	if (has(m, at, ends[is_double ? END_TRIPLE_DOUBLE : END_TRIPLE_SINGLE]))
		return hide_lines(m, at + 3, is_double ? END_TRIPLE_DOUBLE : END_TRIPLE_SINGLE);
	end = find_quote(m, at);
	if (end > 0) {
		hide_words(m, at + 1, end);
		return end + 1;
	}
	return takes_lines(m, at) ? hide_lines(m, at + 1, is_double ? END_DOUBLE : END_SINGLE)
	                          : at + 1;
}

static size_t pass_backquote(struct masking *m, size_t at)
{
	size_t end = find_quote(m, at);

	if (has(m, at, "```")) /* a fence of Markdown */
		return at + 3;
	if (end == 0)
		return hide_lines(m, at + 1, END_BACKQUOTE);
	hide_words(m, at + 1, end);
	return end + 1;
}

static size_t pass_comment(struct masking *m, size_t at)
{
	size_t end = end_of_line(m, at);

	hide(m, at, end);
	return end;
}

/* "# text", not "#include" and "$#". */
static size_t pass_hash(struct masking *m, size_t at)
{
	char before = char_before(m, at), next = char_at(m, at + 1);

	if ((before == '\n' || is_blank(before)) && (is_blank(next) || is_one_of(next, "\n!#-=")))
		return pass_comment(m, at + 1);
	return at + 1;
}

/* Not a path, a URL or a division. */
static size_t pass_slash(struct masking *m, size_t at)
{
	if (has(m, at, "//") && follows(m, at, ";{},"))
		return pass_comment(m, at + 2);
	if (has(m, at, "/*") && follows(m, at, ";{},()="))
		return hide_lines(m, at + 2, END_COMMENT);
	return at + 1;
}

static size_t pass_dash(struct masking *m, size_t at)
{
	return has(m, at, "-- ") && follows(m, at, "") ? pass_comment(m, at + 2) : at + 1;
}

/* Of a here-document: <<EOF, <<-EOF, <<~EOF, <<'EOF', << EOF, and <<<EOF of PHP. */
struct label {
	const char *name;
	size_t len, after;
	bool is_sure; /* no shift, and no output of C++ */
};

static bool read_label(const struct masking *m, size_t at, struct label *ret_label)
{
	bool is_joined = true;
	size_t name = at + 2, end;
	char quote = 0;

	name += char_at(m, name) == '<';
	name += is_one_of(char_at(m, name), "-~");
	for (; is_blank(char_at(m, name)); name++)
		is_joined = false;
	if (is_one_of(char_at(m, name), "'\""))
		quote = char_at(m, name++);
	for (end = name; is_word(char_at(m, end));)
		end++;
	if (end == name || (quote && char_at(m, end) != quote))
		return false;
	*ret_label = (struct label){.name = m->text + name,
	                            .len = end - name,
	                            .after = end + (quote != 0),
	                            .is_sure = is_blank(char_before(m, at)) && end - name > 1 &&
	                                       isupper((unsigned char)m->text[name]) &&
	                                       (is_joined || quote == '\'')};
	return true;
}

/* A line with the label alone, or before ";", ")" or ",". Return: where it begins; 0: nowhere. */
static size_t find_label(const struct masking *m, size_t from, const struct label *label)
{
	for (size_t at = from; at < m->len; at = end_of_line(m, at) + 1) {
		size_t first = at;

		while (is_blank(char_at(m, first)))
			first++;
		if (m->len - first < label->len ||
		    memcmp(m->text + first, label->name, label->len) != 0)
			continue;
		if (is_blank(char_at(m, first + label->len)) ||
		    is_one_of(char_at(m, first + label->len), "\n;),"))
			return at;
	}
	return m->is_cut && label->is_sure ? m->len : 0;
}

static size_t pass_document(struct masking *m, size_t at)
{
	struct label label;
	size_t body, stop;

	if (m->documents == DOCUMENTS_MAX || !read_label(m, at, &label))
		return at + 2;
	m->documents++;
	body = end_of_line(m, label.after);
	stop = find_label(m, body + 1, &label);
	if (stop == 0)
		return at + 2;
	hide(m, body, stop);
	return label.after;
}

static size_t pass(struct masking *m, size_t at)
{
	switch (m->text[at]) {
	case '"':
	case '\'':
		return pass_quote(m, at);
	case '`':
		return pass_backquote(m, at);
	case '#':
		return pass_hash(m, at);
	case '/':
		return pass_slash(m, at);
	case '-':
		return pass_dash(m, at);
	case '<':
		return has(m, at, "<<") ? pass_document(m, at) : at + 1;
	case '\\':
		return at + 2;
	default:
		return at + 1;
	}
}

void mask_literals(char *text, size_t len, bool is_cut)
{
	struct masking m = {.len = len, .is_cut = is_cut};

	m.text = text;
	for (size_t at = 0; at < len;)
		at = pass(&m, at);
}
