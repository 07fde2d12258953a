/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: lines of a person at a terminal, or of a pipe, gathered into programs. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

struct repl_input;

enum repl_read {
	REPL_PROGRAM,     /* one complete program */
	REPL_INTERRUPTED, /* Ctrl-C: what was typed is dropped */
	REPL_END,         /* Ctrl-D, EOF, or a signal that ends us */
};

/**
 * repl_needs_more - whether @text is the beginning of a program: an open bracket or quote, a line
 * that opens a block (closed by an empty line), or a backslash at the end. Pure; works for Python,
 * shell and JavaScript.
 */
bool repl_needs_more(const char *text, size_t len);

void repl_input_free(struct repl_input *in);
/**
 * repl_input_new - line editing and the history of @history (NULL: none) on a terminal.
 * @interrupt_fd is from interrupt_open.
 */
struct repl_input *repl_input_new(int interrupt_fd, const char *history)
	attr_owned(repl_input_free);
/** repl_input_read - @ret_program: NUL-terminated. */
enum repl_read repl_input_read(struct repl_input *in, struct buf *ret_program);
