/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exit_status.h"

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/client/interrupt.h"
#include "cli/message.h"

struct words {
	const char *word; /* in the result */
	const char *text;
};

static const struct words limits[] = {
	{"time", "the program reached its time limit and was stopped (--timeout)"},
	{"cpu", "the program used up its processor time and was killed (--cpu)"},
	{"memory", "the program reached its memory limit (--memory)"},
	{"processes", "the program reached its process limit (--processes)"},
	{"output", "the program's output was truncated at its limit (--max-output)"},
	{"disk", "the program ran out of disk space (--disk)"},
};

/* They say nothing about the program. */
static const struct words failures[] = {
	{"crashed", "the box failed before the program ended"},
	{"cancelled", "the execution was cancelled"},
};

static const struct exit_row rows[] = {
	{"0", "success"},
	{"1", "a check fails (doctor, status, verify, explain ...), or a change was not applied"},
	{"2", "the command line or the value of an option is invalid"},
	{"123", "the program succeeded, but its output was cut at its limit"},
	{"124", "the program reached its time limit"},
	{"125", "Millibox failed: no daemon, the request was refused, or the box was lost"},
	{"128 + N", "signal N killed the program, or cancelled the command (130: Ctrl-C)"},
	{"others",
         "run, shell, session exec: those of the program; sandbox-run: its own, in its help"},
};

const struct exit_row *exit_status_row(size_t index)
{
	return index < ARRAY_SIZE(rows) ? &rows[index] : NULL;
}

void exit_status_print(FILE *out)
{
	(void)fputs("Exit status:\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		(void)fprintf(out, "  %-7s  %s\n", rows[i].status, rows[i].meaning);
}

static const char *find_text(const struct words *table, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++) {
		if (str_equal(table[i].word, word))
			return table[i].text;
	}
	return NULL;
}

int exit_status_of_error(const struct error *err)
{
	return err->code == ERR_INVALID ? CLI_USAGE : CLI_ERROR;
}

int exit_status_of_failure(int interrupt_fd, struct error *err)
{
	int signo = interrupt_taken(interrupt_fd);

	if (signo == 0)
		return -1;
	error_clear(err);
	return CLI_SIGNAL + signo;
}

int exit_status_of_result(const json_t *result)
{
	const char *status = message_text(result, "status");
	const json_t *code = json_object_get(result, "exit_code");
	json_int_t value = json_integer_value(code);

	if (str_equal(status, "timeout"))
		return CLI_TIMED_OUT;
	if (find_text(failures, ARRAY_SIZE(failures), status))
		return CLI_ERROR;
	if (!json_is_integer(code) || value < 0 || value > 255)
		return CLI_ERROR;
	/* In a pipe, a part would pass for the whole. */
	if (value == 0 && str_equal(message_text(result, "limit"), "output"))
		return CLI_CUT;
	return (int)value;
}

int exit_status_of_problem(const json_t *problem)
{
	bool is_usage = str_equal(message_text(problem, "error_code"), error_text(ERR_INVALID));

	return is_usage ? CLI_USAGE : CLI_ERROR;
}

/* Limits that a process reached while the program continued. */
static void show_denied_limits(const json_t *result)
{
	const json_t *denial;
	size_t i;

	json_array_foreach (json_object_get(result, "denials"), i, denial) {
		const char *text =
			find_text(limits, ARRAY_SIZE(limits), message_text(denial, "what"));

		if (text && str_equal(message_text(denial, "kind"), "limit"))
			message_show("%s", text);
	}
}

void exit_status_explain(const json_t *result)
{
	const char *limit = message_text(result, "limit");
	const char *failure =
		find_text(failures, ARRAY_SIZE(failures), message_text(result, "status"));
	const char *text = find_text(limits, ARRAY_SIZE(limits), limit);

	if (failure)
		message_show("%s", failure);
	if (text)
		message_show("%s", text);
	else if (*limit)
		message_show("the program reached its %s limit", limit);
	else if (str_equal(message_text(result, "status"), "timeout"))
		message_show("%s", limits[0].text);
	else
		show_denied_limits(result);
}
