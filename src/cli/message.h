/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what the command line tool says in its own name, on stderr. Text that came from elsewhere
 * loses its control characters: an answer must not be able to write to the terminal's title.
 */

#include "base/attr.h"
#include <jansson.h>
#include <stdio.h>

struct error;

/** say - one line: "millibox: ...". */
void message_show(const char *fmt, ...) attr_printf(1, 2);
/** say_error - the end of an error's chain: message, errno's text, what to do. */
void message_show_error(const struct error *err);
/** say_problem - an error object of the API: description, detail, what to do, request. */
void message_show_problem(const json_t *problem);
/** say_json - an object to stdout, for programs and for people. */
void message_print_json(const json_t *object);
/** say_print - @text with control characters replaced. */
void message_print_safe(FILE *out, const char *text);
