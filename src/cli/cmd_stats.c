/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/alloc.h"
#include "base/str.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "client/millibox.h"
#include "http/status.h"

#define SESSIONS_MAX 200

static const struct resource_column columns[] = {
	{"SESSION", "session_id", NULL, 24},
	{"STATE", "state", NULL, 12},
	{"CPU MS", "cpu_time_ms", NULL, 13},
	{"MEMORY MB", "memory_mb", NULL, 11},
	{"PEAK MB", "memory_peak_mb", NULL, 11},
	{"LIMIT", "memory", "resources", 8},
	{"PROCESSES", "processes_peak", NULL, 11},
	{"EXECUTIONS", "executions", NULL, 12},
	{"QUEUED", "queued", NULL, 8},
	{"BACKGROUND", "background", NULL, 0},
};

static const struct resource stats = {RESOURCE_COLUMNS(columns)};

struct stats_call {
	const struct common_options *options;
	struct millibox_client *client; /* owned */
	json_t *list;                   /* with --json */
	bool titled;
	int worst;
};

/* Not after an error alone. */
static void print_titles(struct stats_call *s)
{
	if (!s->titled && !s->options->json)
		resource_print_titles(&stats);
	s->titled = true;
}

/* @may_end: it was listed; one that ended since is skipped. Return: 0, or -1 with *err. */
static int add_session(struct stats_call *s, const char *id, bool may_end, struct error *err)
{
	cleanup_free char *path = daemon_session_path(id, "/stats", err);
	const struct daemon_call call = {.method = "GET", .path = path};
	json_auto_t *answer = NULL;
	int status = 0;

	if (!path || daemon_ask(s->client, &call, &answer, &status, err) < 0)
		return -1;
	if (status == HTTP_OK && s->options->json) {
		json_array_append(s->list, answer);
	} else if (status == HTTP_OK) {
		print_titles(s);
		resource_print_row(&stats, answer);
	} else if (!may_end) {
		message_show_problem(answer);
		s->worst = exit_status_of_problem(answer);
	}
	return 0;
}

static bool has_box(const json_t *session)
{
	const char *status = message_text(session, "status");

	return str_equal(status, "ready") || str_equal(status, "running") ||
	       str_equal(status, "paused");
}

static int add_all(struct stats_call *s, struct error *err)
{
	json_auto_t *answer = NULL;
	const json_t *session;
	size_t i;
	int status = 0;

	if (daemon_answer(s->client, millibox_session_list(s->client, NULL, SESSIONS_MAX, NULL),
	                  &answer, &status, err) < 0)
		return -1;
	if (status == HTTP_OK) {
		print_titles(s);
	} else {
		message_show_problem(answer);
		s->worst = exit_status_of_problem(answer);
	}
	json_array_foreach (json_object_get(answer, "sessions"), i, session)
		if (has_box(session) &&
		    add_session(s, message_text(session, "session_id"), true, err) < 0)
			return -1;
	if (json_is_true(json_object_get(answer, "has_more")))
		message_show("only the newest %d sessions are shown", SESSIONS_MAX);
	return 0;
}

static int add_sessions(struct stats_call *s, const struct args *args, struct error *err)
{
	if (args->words_count == 0)
		return add_all(s, err);
	for (size_t i = 0; i < args->words_count; i++)
		if (add_session(s, args->words[i], false, err) < 0)
			return -1;
	return 0;
}

static int run_stats(const void *values, const struct args *args, struct error *err)
{
	struct stats_call s = {.options = values, .worst = CLI_OK};
	json_auto_t *list = json_array();
	int r;

	s.list = list;
	s.client = daemon_open(&s.options->at);
	r = daemon_require(s.client, err);
	if (r == 0)
		r = add_sessions(&s, args, err);
	millibox_client_free(s.client);
	if (r < 0)
		return -1;
	if (s.options->json)
		message_print_json(list);
	return s.worst;
}

COMMAND(stats, "stats", "[SESSION...]", "Show the resource usage of sessions", run_stats,
        resource_rows, struct common_options,
        .text = "Without SESSION, all sessions with a box are shown. CPU time and memory are "
                "those of the box; an ephemeral session has a box only while it runs a "
                "program.\n");
