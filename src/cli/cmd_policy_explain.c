/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "cli/run_request.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"
#include "http/status.h"
#include "json/json_dump.h"

struct explain_options {
	struct run_options run;
	const char *mode;
	uint64_t lifetime_us;
	bool session;
};

#define AT(member)     offsetof(struct explain_options, member)
#define AT_RUN(member) AT(run.member)

static const struct resource_field fields[] = {
	{"lifetime", RESOURCE_SECONDS, AT(lifetime_us), "lifetime", NULL},
	{"language", RESOURCE_TEXT, AT(run.language), "language", NULL},
	{"mode", RESOURCE_TEXT, AT(mode), "mode", NULL},
};

/* Return: owned, or NULL with *err. */
static char *build_body(const struct explain_options *options, struct error *err)
{
	struct explain_options o = *options;
	json_auto_t *body = NULL;

	if (!o.session && (o.mode || o.lifetime_us)) {
		(void)error_set(err, ERR_INVALID, 0, "--mode and --lifetime require --session");
		return NULL;
	}
	if (!o.run.language && !o.session)
		o.run.language = "python";
	if (!o.mode && o.session)
		o.mode = "persistent";
	body = run_request_common(&o.run, err);
	if (!body || resource_add_fields(body, fields, ARRAY_SIZE(fields), &o, err) < 0)
		return NULL;
	(void)json_object_set_new(body, "kind", json_string(o.session ? "session" : "execute"));
	return json_dump_text(body, JSON_COMPACT);
}

#define NAME_WIDTH  16
#define VALUE_WIDTH 14
#define WIDTH_MAX   48 /* a longer value shifts its line */

struct widths {
	int asked, granted;
};

/* Line @i of a value: lists have an item in each, others only the first. Return: owned. */
static char *line_of(const json_t *value, size_t i)
{
	const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;

	if (json_is_array(value) && !item)
		return xstrdup(i == 0 ? "none" : "");
	if (i > 0 && !json_is_array(value))
		return xstrdup("");
	if (!item || json_is_null(item))
		return xstrdup("-");
	return json_is_string(item) ? xstrdup(json_string_value(item))
	                            : json_dump_text(item, JSON_COMPACT);
}

static void print_value(const json_t *value, size_t line, int width)
{
	cleanup_free char *text = line_of(value, line);
	int len = text ? (int)strlen(text) : 0;

	message_print_safe(stdout, text ? text : "");
	(void)printf("%*s", len < width ? width - len : 1, "");
}

static void widen(int *width, const json_t *value)
{
	for (size_t i = 0; i == 0 || i < json_array_size(value); i++) {
		cleanup_free char *text = line_of(value, i);
		int len = text ? (int)strlen(text) + 2 : 0;

		if (len > *width && len <= WIDTH_MAX)
			*width = len;
	}
}

/* Of an object of grants; other members are groups of their own. */
static void measure(struct widths *w, json_t *grants)
{
	const char *name;
	json_t *grant;

	json_object_foreach (grants, name, grant) {
		widen(&w->asked, json_object_get(grant, "requested"));
		widen(&w->granted, json_object_get(grant, "granted"));
	}
}

static void print_grant(const struct widths *w, const char *indent, const char *name,
                        const json_t *grant)
{
	const json_t *asked = json_object_get(grant, "requested");
	const json_t *granted = json_object_get(grant, "granted");
	const char *rule =
		json_string_value(json_object_get(json_object_get(grant, "rule"), "text"));
	size_t lines = json_array_size(granted);

	(void)printf("%s%-*s", indent, NAME_WIDTH - (int)strlen(indent), name);
	print_value(asked, 0, w->asked);
	print_value(granted, 0, w->granted);
	message_print_safe(stdout, rule ? rule : "-");
	(void)putchar('\n');
	if (lines < json_array_size(asked))
		lines = json_array_size(asked);
	for (size_t i = 1; i < lines; i++) {
		(void)printf("%*s", NAME_WIDTH, "");
		print_value(asked, i, w->asked);
		print_value(granted, i, w->granted);
		(void)putchar('\n');
	}
}

static void print_group(const struct widths *w, const char *indent, json_t *grants)
{
	const char *name;
	json_t *grant;

	json_object_foreach (grants, name, grant)
		print_grant(w, indent, name, grant);
}

static void print_grants(json_t *grants)
{
	struct widths w = {VALUE_WIDTH, VALUE_WIDTH};

	measure(&w, grants);
	measure(&w, json_object_get(grants, "limits"));
	measure(&w, json_object_get(grants, "reach"));
	(void)printf("%-*s%-*s%-*s%s\n", NAME_WIDTH, "WHAT", w.asked, "REQUESTED", w.granted,
	             "GRANTED", "RULE");
	print_group(&w, "", json_object_get(grants, "limits"));
	print_grant(&w, "", "language", json_object_get(grants, "language"));
	print_grant(&w, "", "engine", json_object_get(grants, "engine"));
	print_grant(&w, "", "network", json_object_get(grants, "network"));
	print_group(&w, "  ", json_object_get(grants, "reach"));
	print_grant(&w, "", "on_overflow", json_object_get(grants, "on_overflow"));
	print_grant(&w, "", "isolation", json_object_get(grants, "isolation"));
}

static int run_explain(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct explain_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->run.at);
	cleanup_own_daemon struct own_daemon *own = NULL;
	cleanup_free char *body = build_body(options, err);
	const struct daemon_call call = {
		.method = "POST", .path = "/api/v1/policy/explain", .body = body};
	json_auto_t *answer = NULL;
	bool allowed;
	int status = 0;

	if (!body || start_daemon_find(&options->run.at, client, -1, &own, err) < 0 ||
	    daemon_ask(client, &call, &answer, &status, err) < 0)
		return -1;
	allowed = json_is_true(json_object_get(answer, "allowed"));
	if (status != HTTP_OK)
		message_show_problem(answer);
	else if (options->run.json)
		message_print_json(answer);
	else if (allowed)
		print_grants(json_object_get(answer, "grants"));
	else
		message_show_problem(json_object_get(answer, "refusal"));
	if (status != HTTP_OK)
		return exit_status_of_problem(answer);
	return allowed ? CLI_OK : CLI_FAILED;
}

/* clang-format off */
static const struct option_row rows[] = {
	{"session",    0,   OPTION_FLAG,     AT(session),            NULL,         "explain a session instead of an execution"},
	{"mode",       0,   OPTION_TEXT,     AT(mode),               "MODE",       "mode of the session: persistent (default), workspace or ephemeral"},
	{"lifetime",   0,   OPTION_DURATION, AT(lifetime_us),        "TIME",       "lifetime of the session"},
	POLICY_ROWS(AT_RUN),
	{"language",   'l', OPTION_TEXT,     AT(run.language),       "LANGUAGE",   "language, see 'millibox languages'; default: python"},
	{"timeout",    't', OPTION_DURATION, AT(run.timeout_us),     "TIME",       "time limit; idle time-out of a session"},
	LIMIT_ROWS(AT_RUN),
	OUTPUT_ROW(AT_RUN),
	ENV_ROW(AT_RUN),
	{"json",       0,   OPTION_FLAG,     AT(run.json),           NULL,         "print the daemon's response as JSON"},
	ISOLATION_ROW(AT(run.at)),
	ENDPOINT_ROWS(AT(run.at)),
};
/* clang-format on */

COMMAND(policy_explain, "policy explain", "",
        "Explain what a request would be granted, and by which rule", run_explain, rows,
        struct explain_options,
        .text = "Nothing is run or created. The exit status is 0 if the request would be "
                "granted, 1 if it would be refused.\n");
