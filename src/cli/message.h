/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: messages of millibox itself, on stderr, and JSON on stdout. Control characters in text from
 * elsewhere are replaced: a response must not be able to control the terminal.
 */

#include "base/attr.h"
#include <jansson.h>
#include <stdio.h>

struct error;

/** message_show - print one line: "millibox: ...". */
void message_show(const char *fmt, ...) attr_printf(1, 2);
/** message_show_error - print the error's message and the text of its errno. */
void message_show_error(const struct error *err);
/** message_show_problem - print an error object of the API, with a remedy if there is one. */
void message_show_problem(const json_t *problem);
/** message_text - the string @key of @object; "" if there is none. */
const char *message_text(const json_t *object, const char *key);
/** message_print_json - print @object to stdout, indented. */
void message_print_json(const json_t *object);
/** message_print_safe - print @text with control characters replaced. */
void message_print_safe(FILE *out, const char *text);
