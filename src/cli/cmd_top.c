/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/client/interrupt.h"
#include "cli/color.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "client/millibox.h"
#include "http/status.h"
#include "json/json_dump.h"

/*
 * Theory of operation. One screen per interval: sessions, the busiest first, and pools. The
 * processor's share of a session is the growth of its CPU time since the screen before; the first
 * screen has none.
 */

#define SESSIONS_MAX 200
#define INTERVAL_US  (2 * USEC_PER_SEC)
#define OTHER_LINES  12
#define CLEAR_SCREEN "\033[H\033[2J"

struct top_options {
	struct common_options common;
	uint64_t interval_us;
	uint64_t rounds;
};

struct top_row {
	char *id; /* owned */
	const char *state;
	double cpu_ms, percent, memory_mb;
	long long executions, queued, background;
	uint64_t round; /* it was last seen */
	bool is_new;    /* since this round: no share of the processor is known */
	json_t *stats;  /* owned: the texts are its */
};

struct top {
	const struct top_options *options;
	struct millibox_client *client; /* owned */
	struct top_row *rows;           /* owned */
	size_t count;
	uint64_t round, at_us, before_us;
	bool has_keys;         /* q is read */
	struct termios before; /* if @has_keys */
};

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static struct top_row *row_of(struct top *t, const char *id)
{
	for (size_t i = 0; i < t->count; i++)
		if (str_equal(t->rows[i].id, id))
			return &t->rows[i];
	t->rows = xrealloc_array(t->rows, t->count + 1, sizeof(*t->rows));
	t->rows[t->count] = (struct top_row){.id = xstrdup(id)};
	return &t->rows[t->count++];
}

static void drop_row(struct top *t, size_t index)
{
	free(t->rows[index].id);
	json_decref(t->rows[index].stats);
	t->rows[index] = t->rows[--t->count];
}

/* A JSON object. Return: 0, 1: another status than 200, or -1 with *err. */
static int get_object(struct top *t, const char *path, json_t **ret_answer, struct error *err)
{
	const struct daemon_call call = {.method = "GET", .path = path};
	int status = 0;

	if (daemon_ask(t->client, &call, ret_answer, &status, err) < 0)
		return -1;
	return status == HTTP_OK ? 0 : 1;
}

static void update_row(struct top *t, struct top_row *row, json_t *stats)
{
	double cpu_ms = number_of(stats, "cpu_time_ms");
	double passed_ms = (double)(t->at_us - t->before_us) / USEC_PER_MS;
	bool seen_before = row->round != 0 && row->round + 1 == t->round;

	json_decref(row->stats);
	row->stats = json_incref(stats);
	row->is_new = !seen_before;
	row->percent = seen_before && passed_ms > 0 ? 100 * (cpu_ms - row->cpu_ms) / passed_ms : 0;
	row->cpu_ms = cpu_ms;
	row->memory_mb = number_of(stats, "memory_mb");
	row->executions = json_integer_value(json_object_get(stats, "executions"));
	row->queued = json_integer_value(json_object_get(stats, "queued"));
	row->background = json_integer_value(json_object_get(stats, "background"));
	row->state = message_text(stats, "state");
	row->round = t->round;
}

/* One that ended since it was listed is skipped. */
static int read_session(struct top *t, const char *id, struct error *err)
{
	cleanup_free char *path = daemon_session_path(id, "/stats", err);
	json_auto_t *stats = NULL;
	int r = path ? get_object(t, path, &stats, err) : -1;

	if (r == 0)
		update_row(t, row_of(t, id), stats);
	return r < 0 ? -1 : 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->percent != y->percent)
		return x->percent < y->percent ? 1 : -1;
	return x->memory_mb < y->memory_mb ? 1 : x->memory_mb > y->memory_mb ? -1 : 0;
}

static bool is_live(const json_t *session)
{
	const char *status = message_text(session, "status");

	return !str_equal(status, "terminated") && !str_equal(status, "failed");
}

static int read_sessions(struct top *t, struct error *err)
{
	cleanup_free char *path = xasprintf("/api/v1/sessions?limit=%d", SESSIONS_MAX);
	json_auto_t *answer = NULL;
	const json_t *session;
	size_t i;
	int r = get_object(t, path, &answer, err);

	if (r > 0 && t->options->common.json)
		message_print_json(answer);
	else if (r > 0)
		message_show_problem(answer);
	if (r > 0)
		return 1;
	json_array_foreach (json_object_get(answer, "sessions"), i, session)
		if (is_live(session) &&
		    read_session(t, message_text(session, "session_id"), err) < 0)
			return -1;
	for (i = t->count; i-- > 0;)
		if (t->rows[i].round != t->round)
			drop_row(t, i);
	if (t->count > 1)
		qsort(t->rows, t->count, sizeof(*t->rows), compare_rows);
	return r;
}

static void print_sessions(const struct top *t, size_t lines)
{
	(void)printf("%-22s%-10s%6s%10s%11s%8s%12s\n", "SESSION", "STATE", "CPU %", "MEMORY MB",
	             "EXECUTIONS", "QUEUED", "BACKGROUND");
	for (size_t i = 0; i < t->count && i < lines; i++) {
		const struct top_row *row = &t->rows[i];

		(void)printf("%-22s%-10s%6.1f%10.1f%11lld%8lld%12lld\n", row->id, row->state,
		             row->percent, row->memory_mb, row->executions, row->queued,
		             row->background);
	}
	if (t->count > lines)
		(void)printf("... and %zu more\n", t->count - lines);
}

static void print_screen_json(struct top *t)
{
	json_t *list = json_array();
	json_auto_t *screen = json_pack("{s:o}", "sessions", list), *answer = NULL;
	cleanup_free char *line = NULL;
	struct error err = {0};

	for (size_t i = 0; i < t->count; i++) {
		const struct top_row *row = &t->rows[i];

		(void)json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:o, s:f, s:I, s:I, s:I}", "session_id", row->id,
		                  "state", row->state, "cpu_percent",
		                  row->is_new ? json_null() : json_real(row->percent), "memory_mb",
		                  row->memory_mb, "executions", (json_int_t)row->executions,
		                  "queued", (json_int_t)row->queued, "background",
		                  (json_int_t)row->background));
	}
	/* A key without the scope sees its sessions only. */
	if (get_object(t, "/api/v1/pools", &answer, &err) == 0)
		(void)json_object_set(screen, "pools", json_object_get(answer, "pools"));
	line = json_dump_text(screen, JSON_COMPACT | JSON_ENSURE_ASCII);
	(void)puts(line ? line : "");
	(void)fflush(stdout);
}

static void print_pools(struct top *t)
{
	json_auto_t *answer = NULL;
	struct error err = {0};
	const json_t *pool;
	size_t i;

	/* A key without the scope sees its sessions only. */
	if (get_object(t, "/api/v1/pools", &answer, &err) != 0)
		return;
	(void)printf("\n%-12s%-12s%7s%8s%9s%9s\n", "POOL", "MODE", "READY", "TARGET", "HITS",
	             "MISSES");
	json_array_foreach (json_object_get(answer, "pools"), i, pool) {
		const char *language = message_text(pool, "language");

		(void)printf("%-12.11s%-12.11s%7.0f%8.0f%9.0f%9.0f\n", *language ? language : "-",
		             message_text(pool, "mode"), number_of(pool, "ready"),
		             number_of(pool, "target"), number_of(pool, "hits"),
		             number_of(pool, "misses"));
	}
}

/* Of sessions: the rest is for titles and pools. */
static size_t screen_lines(void)
{
	struct winsize size = {0};

	if (!isatty(STDOUT_FILENO))
		return SESSIONS_MAX;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	return size.ws_row > OTHER_LINES ? size.ws_row - OTHER_LINES : 1;
}

static int show_screen(struct top *t, struct error *err)
{
	int r;

	t->round++;
	t->before_us = t->at_us;
	t->at_us = clock_us();
	r = read_sessions(t, err);
	if (r != 0)
		return r;
	if (t->options->common.json) {
		print_screen_json(t);
		return 0;
	}
	if (color_has_escapes(STDOUT_FILENO))
		(void)fputs(CLEAR_SCREEN, stdout);
	else if (t->round > 1)
		(void)putchar('\n');
	(void)printf("millibox: %zu session%s\n\n", t->count, t->count == 1 ? "" : "s");
	print_sessions(t, screen_lines());
	print_pools(t);
	(void)fflush(stdout);
	return 0;
}

/* So that keys come at once, and unseen. */
static void read_keys(struct top *t)
{
	struct termios keys;

	if (t->options->common.json || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &t->before) < 0)
		return;
	keys = t->before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	t->has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

/* Return: whether it ends the screens. */
static bool take_key(struct top *t)
{
	char key;
	ssize_t n = read(STDIN_FILENO, &key, 1);

	/* Another key only brings the next screen. */
	t->has_keys = n == 1;
	return n == 1 && (key == 'q' || key == 'Q');
}

/* Return: whether a signal or a key ended the screens. */
static bool wait_interval(struct top *t, int interrupt_fd)
{
	uint64_t us = t->options->interval_us ? t->options->interval_us : INTERVAL_US;
	struct pollfd fds[] = {
		{.fd = interrupt_fd, .events = POLLIN},
		{.fd = t->has_keys ? STDIN_FILENO : -1, .events = POLLIN},
	};

	(void)poll(fds, ARRAY_SIZE(fds), (int)(us / USEC_PER_MS));
	if (fds[1].revents && take_key(t))
		return true;
	return interrupt_taken(interrupt_fd) > 0;
}

static int show_screens(struct top *t, int interrupt_fd, struct error *err)
{
	for (;;) {
		int r = show_screen(t, err);

		if (r != 0)
			return r < 0 ? -1 : CLI_ERROR;
		/* Its reader has ended, as in "top | head"; SIGPIPE is ignored. */
		if (ferror(stdout))
			return CLI_SIGNAL + SIGPIPE;
		if (t->options->rounds && t->round >= t->options->rounds)
			return CLI_OK;
		/* Ctrl-C and q are how one leaves it. */
		if (wait_interval(t, interrupt_fd))
			return CLI_OK;
	}
}

static int run_screens(struct top *t, struct error *err)
{
	cleanup_close int interrupt_fd = interrupt_open(err);
	bool changes_terminal;
	int status;

	if (interrupt_fd < 0)
		return -1;
	read_keys(t);
	changes_terminal = t->has_keys;
	status = show_screens(t, interrupt_fd, err);
	if (changes_terminal)
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
	return status;
}

static int run_top(const void *values, const struct args *args attr_unused, struct error *err)
{
	struct top t = {.options = values};
	int status;

	t.client = daemon_open(&t.options->common.at);
	status = daemon_require(t.client, err);
	if (status == 0)
		status = run_screens(&t, err);
	millibox_client_free(t.client);
	while (t.count > 0)
		drop_row(&t, t.count - 1);
	free(t.rows);
	return status;
}

#define AT(member) offsetof(struct top_options, member)

/* clang-format off */
static const struct option_row rows[] = {
	{"interval", 'd', OPTION_DURATION, AT(interval_us), "TIME", "time between two screens; default: 2s"},
	{"rounds",   'n', OPTION_NUMBER,   AT(rounds),      "N",    "end after N screens; default: q or Ctrl-C ends it"},
	{"json",     0,   OPTION_FLAG,     AT(common.json), NULL,   "print each screen as a line of JSON"},
	ENDPOINT_ROWS(AT(common.at)),
};
/* clang-format on */

COMMAND(top, "top", "", "Show live sessions and pools, the busiest first", run_top, rows,
        struct top_options, .text = "CPU % is of one core, since the screen before. q ends it.\n");
