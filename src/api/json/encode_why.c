/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/encode.h"

#include <stdio.h>
#include <string.h>

#include "api/json/json.h"
#include "api/json/report.h"
#include "base/attr.h"
#include "base/str.h"
#include "core/run/facts.h"
#include "core/run/outcome.h"

/*
 * Theory of operation. Three lines: what ended a program, which rule, what to change. The rule is
 * that of the limit which ended it, else of its first denial. Without either, the end of its own
 * error output may hint at one; then the line says that it is a hint.
 */

#define LINE_LEN 700
/* Of the error output and the exception, where programs say why they end. */
#define TAIL_LEN 4096

static const struct clue {
	const char *text;    /* in the error output or the exception */
	const char *network; /* only in boxes with this network; NULL: in all */
	const char *rule, *change;
} clues[] = {
#define NO_NETWORK                                                                                 \
	"none",                                                                                    \
		"Rule network.mode: the box has no network, and the error output looks like a "    \
		"network failure.",                                                                \
		"Name the hosts in network_allow of the request ('millibox run --allow HOST'), "   \
		"or use a policy with network.mode allowlist (docs/network.md)."
	{"Temporary failure in name resolution", NO_NETWORK},
	{"Name or service not known", NO_NETWORK},
	{"Could not resolve host", NO_NETWORK},
	{"Network is unreachable", NO_NETWORK},
	{"EAI_AGAIN", NO_NETWORK},
	{"ENOTFOUND", NO_NETWORK},
	{"UnknownHostException", NO_NETWORK},
#define NO_NAMES                                                                                   \
	"allowlist",                                                                               \
		"Rule network: boxes have no name service, and the error output looks like a "     \
		"failed look-up.",                                                                 \
		"Use a client that reads HTTPS_PROXY or ALL_PROXY (docs/network.md)."
	{"Temporary failure in name resolution", NO_NAMES},
	{"Name or service not known", NO_NAMES},
	{"EAI_AGAIN", NO_NAMES},
	{"ENOTFOUND", NO_NAMES},
	{"UnknownHostException", NO_NAMES},
	{"Read-only file system", NULL,
         "Rule root: the root of a box is read-only, and the error output looks like a write to "
         "it.",
         "Write below /workspace or /tmp."},
#undef NO_NETWORK
#undef NO_NAMES
};

static bool ends_with_clue(const char *said, size_t len, const char *text)
{
	size_t from = len > TAIL_LEN ? len - TAIL_LEN : 0;

	return said && memmem(said + from, len - from, text, strlen(text));
}

/* The exception of a persistent interpreter is not in the error output. */
static bool is_said(const struct outcome *o, const json_t *error, const char *text)
{
	const json_t *value = json_object_get(error, "value");

	return ends_with_clue(o->err.data, o->err.len, text) ||
	       ends_with_clue(json_string_value(value), json_string_length(value), text);
}

static const struct clue *find_clue(const struct outcome *o, const json_t *error)
{
	const char *network =
		o->facts ? json_string_value(json_object_get(o->facts->object, "network")) : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(clues); i++)
		if ((!clues[i].network || (network && str_equal(network, clues[i].network))) &&
		    is_said(o, error, clues[i].text))
			return &clues[i];
	return NULL;
}

static void describe_end(const struct outcome *o, const json_t *error, char ret[LINE_LEN])
{
	const char *name = json_string_value(json_object_get(error, "name"));
	const char *value = json_string_value(json_object_get(error, "value"));
	double seconds = (double)o->duration_us / 1e6;

	if (o->status == OUTCOME_SUCCESS)
		(void)snprintf(ret, LINE_LEN, "It succeeded after %.3g s.", seconds);
	else if (o->status == OUTCOME_TIMEOUT)
		(void)snprintf(ret, LINE_LEN, "It was stopped after %.3g s.", seconds);
	else if (o->status == OUTCOME_CANCELLED)
		(void)snprintf(ret, LINE_LEN, "The caller cancelled it.");
	else if (o->status == OUTCOME_CRASHED)
		(void)snprintf(ret, LINE_LEN, "Its box was lost; the program did not cause that.");
	else if (o->signal)
		(void)snprintf(ret, LINE_LEN, "It was ended by signal %d (%s) after %.3g s.",
		               o->signal, strsignal(o->signal), seconds);
	else if (name)
		(void)snprintf(ret, LINE_LEN, "It failed with exit code %d: %.80s: %.400s",
		               o->exit_code, name, value ? value : "");
	else
		(void)snprintf(ret, LINE_LEN, "It failed with exit code %d.", o->exit_code);
}

static const struct denial *main_denial(const struct outcome *o)
{
	const char *limit = outcome_limit_name(o->limit);

	for (unsigned i = 0; limit && i < o->denials_count; i++)
		if (str_equal(o->denials[i].kind, DENIAL_KIND_LIMIT) &&
		    str_equal(o->denials[i].what, limit))
			return &o->denials[i];
	return o->denials_count > 0 ? &o->denials[0] : NULL;
}

static void describe_denial(const struct outcome *o, const struct denial *d, char ret[LINE_LEN])
{
	char more[48] = "", error[48] = "";
	unsigned long long count = d->count;
	const char *times = count == 1 ? "" : "s";

	if (o->denials_count > 1)
		(void)snprintf(more, sizeof(more), " %u other denials are in the result.",
		               o->denials_count - 1);
	if (d->error)
		(void)snprintf(error, sizeof(error), " with %s", strerrorname_np(d->error));
	if (str_equal(d->kind, DENIAL_KIND_LIMIT))
		(void)snprintf(ret, LINE_LEN, "The %s limit was reached (rule %s, %llu time%s).%s",
		               d->what, d->rule, count, times, more);
	else
		(void)snprintf(ret, LINE_LEN, "Rule %s refused %s%s%s%s%s, %llu time%s.%s", d->rule,
		               d->what, d->detail ? " (" : "", d->detail ? d->detail : "",
		               d->detail ? ")" : "", error, count, times, more);
}

static void describe_remedy(const struct denial *d, char ret[LINE_LEN])
{
	cleanup_json json_t *remedy = d->remedy ? json_loads(d->remedy, 0, NULL) : NULL;
	const char *text = json_string_value(json_object_get(remedy, "text"));

	(void)snprintf(ret, LINE_LEN, "%s", text ? text : "What would allow it is not known.");
}

static json_t *lines_of(const char *end, const char *rule, const char *change)
{
	json_t *lines = json_array();

	json_append(lines, json_text(end, strlen(end)));
	json_append(lines, json_text(rule, strlen(rule)));
	json_append(lines, json_text(change, strlen(change)));
	return lines;
}

const char *encode_hint(const struct outcome *o, const json_t *error, const char **ret_change)
{
	bool explained = main_denial(o) || o->status == OUTCOME_SUCCESS;
	const struct clue *clue = explained ? NULL : find_clue(o, error);

	if (clue)
		*ret_change = clue->change;
	return clue ? clue->rule : NULL;
}

json_t *encode_why(const struct outcome *o, const json_t *error)
{
	const struct denial *d = main_denial(o);
	const char *advice = NULL, *hint = encode_hint(o, error, &advice);
	char end[LINE_LEN], rule[LINE_LEN], change[LINE_LEN];

	describe_end(o, error, end);
	if (d) {
		describe_denial(o, d, rule);
		describe_remedy(d, change);
		return lines_of(end, rule, change);
	}
	if (hint)
		return lines_of(end, hint, advice);
	return lines_of(end, "No rule refused anything.",
	                o->status == OUTCOME_CRASHED     ? "Run it again."
	                : o->status == OUTCOME_CANCELLED ? "There is nothing to change."
	                : o->status == OUTCOME_SUCCESS
	                        ? "There is nothing to change."
	                        : "Change the program: read its error output.");
}

json_t *encode_run_why(const struct run_record *e)
{
	cleanup_report struct report report = {0};
	struct run_record_info run = {0};
	json_t *j = json_object(), *lines;

	run_record_info(e, &run);
	if (run.outcome) {
		encode_result_report(run.outcome, &report);
		lines = encode_why(run.outcome, report.error);
	} else if (run.failure) {
		lines = lines_of(
			"It could not run.",
			error_is_internal(run.failure) ? error_text(run.failure->code)
						       : run.failure->msg,
			"Run it again; if that fails too, 'millibox doctor' says what the host "
			"lacks.");
	} else {
		lines = lines_of(run.state == RUN_RECORD_PENDING ? "It waits for its turn."
		                                                 : "It is running.",
		                 "No rule has ended it.", "There is nothing to change yet.");
	}
	json_set(j, "execution_id", json_string(run.id));
	json_set(j, "status", json_string(encode_run_status_name(&run)));
	json_set(j, "why", lines);
	return j;
}
