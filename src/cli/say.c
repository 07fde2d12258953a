/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/say.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* In UTF-8 the second range of controls, U+0080 to U+009F, is 0xC2 and one of these. */
static bool is_c1_control(const char *p)
{
	return (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] >= 0x80 &&
	       (unsigned char)p[1] < 0xa0;
}

void say_print(FILE *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		if (*p == '\n' || *p == '\t') {
			(void)fputc(' ', out);
		} else if (iscntrl((unsigned char)*p)) {
			(void)fputc('?', out);
		} else if (is_c1_control(p)) {
			(void)fputc('?', out);
			p++;
		} else {
			(void)fputc(*p, out);
		}
	}
}

void say(const char *fmt, ...)
{
	cleanup_free char *line = NULL;
	va_list args;
	int r;

	va_start(args, fmt);
	r = vasprintf(&line, fmt, args);
	va_end(args);
	if (r < 0)
		abort();
	(void)fputs("millibox: ", stderr);
	say_print(stderr, line);
	(void)fputc('\n', stderr);
}

void say_error(const struct error *err)
{
	if (err->sys)
		say("%s: %s", err->msg, strerror(err->sys));
	else
		say("%s", err->msg);
}

static void print_member(const json_t *problem, const char *key, const char *label)
{
	const char *text = json_string_value(json_object_get(problem, key));

	if (!text || !*text)
		return;
	(void)fprintf(stderr, "  %s", label);
	say_print(stderr, text);
	(void)fputc('\n', stderr);
}

void say_problem(const json_t *problem)
{
	const char *description = json_string_value(json_object_get(problem, "description"));

	if (!description)
		description = json_string_value(json_object_get(problem, "error_code"));
	say("%s", description ? description : "the daemon refused without saying why");
	print_member(problem, "error_detail", "");
	print_member(problem, "solution", "What to do: ");
	print_member(problem, "request_id", "Request: ");
}

void say_json(const json_t *object)
{
	char *text = json_dumps(object, JSON_INDENT(2) | JSON_ENSURE_ASCII);

	if (!text)
		abort();
	(void)puts(text);
	free(text);
}
