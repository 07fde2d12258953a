/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/repl_input.h"

#include <errno.h>
#include <histedit.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/cancel_io.h"
#include "cli/client/interrupt.h"

#define HISTORY_LINES 1000

struct repl_input {
	EditLine *line;   /* owned; NULL: not a terminal */
	History *history; /* owned; with @line */
	char *path;       /* owned; NULL: the history is not kept */
	int interrupt_fd;
	bool interrupted, ended, more;
	mbstate_t state;
};

/* Of the text so far: brackets open, and the quote that is open. */
struct scan {
	int depth;
	char quote;  /* 0: none */
	bool triple; /* """ or ''' */
};

static bool is_triple(const char *at, const char *end)
{
	return end - at >= 3 && at[1] == at[0] && at[2] == at[0];
}

/* Return: the last byte of what begins at @at. */
static const char *scan_quoted(struct scan *s, const char *at, const char *end)
{
	if (*at == '\\' && at + 1 < end)
		return at + 1;
	/* Only back quotes and triple quotes span lines. */
	if (*at == '\n' && !s->triple && s->quote != '`')
		s->quote = 0;
	if (*at != s->quote || (s->triple && !is_triple(at, end)))
		return at;
	s->quote = 0;
	return s->triple ? at + 2 : at;
}

static const char *scan_code(struct scan *s, const char *at, const char *end)
{
	const char *stop;

	if (*at == '#') {
		stop = memchr(at, '\n', (size_t)(end - at));
		return stop ? stop : end;
	}
	if (*at == '\'' || *at == '"' || *at == '`') {
		s->quote = *at;
		s->triple = *at != '`' && is_triple(at, end);
		return s->triple ? at + 2 : at;
	}
	if (*at == '(' || *at == '[' || *at == '{')
		s->depth++;
	if (*at == ')' || *at == ']' || *at == '}')
		s->depth--;
	return at;
}

static bool ends_with_word(const char *text, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && memcmp(text + len - n, word, n) == 0 &&
	       (len == n || strchr(" \t;\n", text[len - n - 1]));
}

/* A line ended with what opens a block, and no empty line has closed it. */
static bool opens_block(const char *text, size_t len)
{
	const char *end = text + len;
	bool open = false;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t line = (size_t)((stop ? stop : end) - text);

		while (line > 0 && strchr(" \t\r", text[line - 1]))
			line--;
		if (line == 0)
			open = false;
		else if (text[line - 1] == ':' || ends_with_word(text, line, "do") ||
		         ends_with_word(text, line, "then") || text[0] == '@')
			open = true;
		text = stop ? stop + 1 : end;
	}
	return open;
}

bool repl_needs_more(const char *text, size_t len)
{
	const char *end = text + len;
	struct scan s = {0};

	for (const char *at = text; at < end; at++)
		at = s.quote ? scan_quoted(&s, at, end) : scan_code(&s, at, end);
	if (s.depth > 0 || (s.quote && (s.triple || s.quote == '`')))
		return true;
	if (opens_block(text, len))
		return true;
	if (len > 0 && text[len - 1] == '\n')
		len--;
	return len > 0 && text[len - 1] == '\\';
}

static char *prompt_of(EditLine *line)
{
	static char first[] = ">>> ", next[] = "... ";
	struct repl_input *in = NULL;

	(void)el_get(line, EL_CLIENTDATA, &in);
	return in && in->more ? next : first;
}

/* A whole character. A signal or an incomplete one ends the line: 0. */
static int read_char(EditLine *line, wchar_t *ret_char)
{
	struct repl_input *in = NULL;
	char byte;

	(void)el_get(line, EL_CLIENTDATA, &in);
	for (;;) {
		ssize_t n = cancel_read(in->interrupt_fd, STDIN_FILENO, &byte, 1);
		size_t r;

		if (n == -ECANCELED) {
			in->interrupted = interrupt_taken(in->interrupt_fd) == SIGINT;
			in->ended = !in->interrupted;
		}
		if (n <= 0)
			return 0;
		r = mbrtowc(ret_char, &byte, 1, &in->state);
		if (r == (size_t)-1) {
			in->state = (mbstate_t){0};
			*ret_char = L'?';
			return 1;
		}
		if (r != (size_t)-2)
			return 1;
	}
}

static void open_editor(struct repl_input *in)
{
	HistEvent event;

	in->line = el_init("millibox", stdin, stdout, stderr);
	if (!in->line)
		return;
	in->history = history_init();
	(void)history(in->history, &event, H_SETSIZE, HISTORY_LINES);
	(void)history(in->history, &event, H_SETUNIQUE, 1);
	if (in->path)
		(void)history(in->history, &event, H_LOAD, in->path);
	(void)el_set(in->line, EL_CLIENTDATA, in);
	(void)el_set(in->line, EL_EDITOR, "emacs");
	(void)el_set(in->line, EL_PROMPT, prompt_of);
	(void)el_set(in->line, EL_GETCFN, read_char);
	(void)el_set(in->line, EL_HIST, history, in->history);
	(void)el_source(in->line, NULL); /* the user's ~/.editrc */
}

struct repl_input *repl_input_new(int interrupt_fd, const char *history)
{
	struct repl_input *in = NEW(struct repl_input);

	in->interrupt_fd = interrupt_fd;
	in->path = history ? xstrdup(history) : NULL;
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		open_editor(in);
	return in;
}

void repl_input_free(struct repl_input *in)
{
	HistEvent event;

	if (!in)
		return;
	if (in->history && in->path)
		(void)history(in->history, &event, H_SAVE, in->path);
	if (in->line)
		el_end(in->line);
	if (in->history)
		history_end(in->history);
	free(in->path);
	free(in);
}

/* From a terminal. Return: false at its end, or interrupted. */
static bool edit_line(struct repl_input *in, struct buf *program)
{
	HistEvent event;
	const char *text;
	int len = 0;

	/* Before the prompt: libedit changes the mode after it, and the kernel turns a Ctrl-D that
	 * was typed in between into a NUL. */
	(void)el_set(in->line, EL_PREP_TERM, 1);
	text = el_gets(in->line, &len);
	if (!text || len <= 0) {
		(void)putchar('\n');
		el_reset(in->line);
		return false;
	}
	if (len > 1)
		(void)history(in->history, &event, H_ENTER, text);
	return buf_add(program, text, (size_t)len) == 0;
}

/* From a pipe or a file. */
static bool read_line(struct repl_input *in, struct buf *program)
{
	size_t before = program->len;
	char byte;

	while (cancel_read(in->interrupt_fd, STDIN_FILENO, &byte, 1) == 1) {
		if (buf_add(program, &byte, 1) < 0)
			return false;
		if (byte == '\n')
			return true;
	}
	in->ended = true;
	return program->len > before;
}

enum repl_read repl_input_read(struct repl_input *in, struct buf *ret_program)
{
	bool more = true;

	buf_reset(ret_program);
	in->interrupted = false;
	while (more && !in->ended) {
		in->more = ret_program->len > 0;
		if (!(in->line ? edit_line(in, ret_program) : read_line(in, ret_program)))
			break;
		more = repl_needs_more(ret_program->data, ret_program->len);
	}
	if (in->interrupted)
		return REPL_INTERRUPTED;
	if (ret_program->len == 0 || (more && in->line))
		return REPL_END;
	return REPL_PROGRAM;
}
