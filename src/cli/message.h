/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: messages of millibox itself, on stderr, and JSON on stdout. Control characters in foreign
 * text are replaced: a response must not control the terminal.
 */

#include "base/attr.h"
#include <jansson.h>
#include <stdio.h>

struct error;

/** message_set_command - named in hints; not copied. */
void message_set_command(const char *name);
/** message_show - one line: "millibox: ...". */
void message_show(const char *fmt, ...) attr_printf(1, 2);
void message_show_error(const struct error *err);
/** message_show_problem - the API's error object, with its remedy. */
void message_show_problem(const json_t *problem);
/** message_show_warnings - of a response: what was requested and not granted. */
void message_show_warnings(const json_t *answer);
/** message_text - "": none. */
const char *message_text(const json_t *object, const char *key);
/** message_print_json - to stdout, indented. */
void message_print_json(const json_t *object);
/** message_print_safe - replaces control characters, marks of direction and invalid UTF-8. */
void message_print_safe(FILE *out, const char *text);
/** message_print_block - the same; line ends and tabs stay. */
void message_print_block(FILE *out, const char *data, size_t len);
