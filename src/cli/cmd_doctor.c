/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <jansson.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/color.h"
#include "cli/common_options.h"
#include "cli/doctor.h"
#include "cli/host_probe.h"
#include "cli/language_install.h"
#include "cli/message.h"
#include "client/millibox.h"
#include "http/status.h"

#define LANGUAGES_MAX    (16 * KIB)
#define DAEMON_TIMEOUT_S 2
/* It may have to run a program of each language first. */
#define LANGUAGES_TIMEOUT_S 30

struct doctor_options {
	struct daemon_options at;
	bool json;
};

/* As the daemon lists them: "python 3.11.2, shell 5.2.15". */
static void add_languages(struct checks *checks, const json_t *list)
{
	cleanup_buf struct buf there = BUF_INIT(LANGUAGES_MAX), missing = BUF_INIT(LANGUAGES_MAX);
	const json_t *language;
	size_t i;

	json_array_foreach (list, i, language) {
		bool is_there = language_is_there(language);
		struct buf *to = is_there ? &there : &missing;
		const char *version = is_there ? message_text(language, "version") : "";

		(void)!buf_addf(to, "%s%s%s%s", to->len ? ", " : "", message_text(language, "name"),
		                *version ? " " : "", version);
	}
	(void)!buf_add(&there, "", 1);
	checks_add(checks, "languages", there.len > 1 ? CHECK_OK : CHECK_INFO, there.data);
	if (missing.len == 0)
		return;
	(void)!buf_add(&missing, "", 1);
	checks_add(checks, "languages.missing", CHECK_MISSING, missing.data);
}

/* "runc 1.1.5, grade namespace", or why it is away. */
static char *describe_engine(const json_t *engine)
{
	const json_t *breaker = json_object_get(engine, "breaker");
	const char *install = message_text(engine, "install");

	if (str_equal(message_text(breaker, "state"), "closed"))
		return xasprintf("%s %s, grade %s%s", message_text(engine, "runtime"),
		                 message_text(engine, "release"), message_text(engine, "grade"),
		                 json_is_true(json_object_get(engine, "default")) ? ", the default"
		                                                                  : "");
	return xasprintf("%s is away (breaker %s): %s%s%s", message_text(engine, "runtime"),
	                 message_text(breaker, "state"), message_text(breaker, "reason"),
	                 *install ? "; " : "", install);
}

/* What could be configured besides. */
static void add_other_engines(struct checks *checks, const json_t *list)
{
	cleanup_buf struct buf text = BUF_INIT(LANGUAGES_MAX);
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		(void)!buf_addf(&text, "%s%s (%s)", text.len ? ", " : "",
		                message_text(one, "runtime"), message_text(one, "install"));
	(void)!buf_add(&text, "", 1);
	if (text.len > 1)
		checks_add(checks, "engines.more", CHECK_INFO, text.data);
}

static void ask_engines(struct checks *checks, struct millibox_client *client)
{
	const struct daemon_call call = {.method = "GET", .path = "/api/v1/runtimes"};
	json_auto_t *answer = NULL;
	struct error err = {0};
	const json_t *engine;
	int status = 0;
	size_t i;

	if (daemon_ask(client, &call, &answer, &status, &err) < 0 || status != HTTP_OK)
		return; /* the check of the languages says why */
	json_array_foreach (json_object_get(answer, "items"), i, engine) {
		bool is_up = str_equal(message_text(json_object_get(engine, "breaker"), "state"),
		                       "closed");
		cleanup_free char *name = xasprintf("engine.%s", message_text(engine, "id"));
		cleanup_free char *value = describe_engine(engine);

		checks_add(checks, name, is_up ? CHECK_OK : CHECK_INFO, value);
	}
	add_other_engines(checks, json_object_get(answer, "not_configured"));
}

/* @client: of a daemon that is ready, or not. */
static void ask_languages(struct checks *checks, struct millibox_client *client, bool ready)
{
	const struct daemon_call call = {.method = "GET", .path = "/api/v1/languages"};
	cleanup_free char *why = NULL;
	json_auto_t *answer = NULL;
	struct error err = {0};
	int status = 0;

	if (ready) {
		(void)millibox_set_timeout(client, LANGUAGES_TIMEOUT_S);
		if (daemon_ask(client, &call, &answer, &status, &err) < 0)
			why = xasprintf("not known: %s", err.msg);
		else if (status != HTTP_OK)
			why = xasprintf("not known: %s", message_text(answer, "description"));
	} else {
		why = xstrdup("not known without a daemon: 'millibox languages' starts one");
	}
	if (why)
		checks_add(checks, "languages", CHECK_INFO, why);
	else
		add_languages(checks, json_object_get(answer, "languages"));
}

static int add_daemon(struct checks *checks, const struct doctor_options *options,
                      struct error *err)
{
	cleanup_daemon struct millibox_client *client = daemon_open(&options->at);
	cleanup_free char *value = NULL, *where = NULL;
	const char *address = NULL;
	int found = millibox_find(client, &address), ready = -1;

	if (found < 0)
		return daemon_fail(client, err);
	where = xstrdup(address);
	(void)millibox_set_timeout(client, DAEMON_TIMEOUT_S);
	if (found)
		ready = millibox_ready(client);
	/* Not an error: "millibox run" starts one. */
	if (ready >= 0)
		value = xasprintf("%s at %s", ready ? "ready" : "not ready", where);
	else if (found && str_equal(millibox_error_code(client), error_text(ERR_UNTRUSTED)))
		value = xstrdup(millibox_error_message(client));
	else
		value = xasprintf("none at %s", where);
	if (ready == 1)
		ask_engines(checks, client);
	ask_languages(checks, client, ready == 1);
	checks_add(checks, "daemon", CHECK_INFO, value);
	return 0;
}

/* The last line. */
static void print_verdict(const struct checks *checks, size_t optional)
{
	if (!checks_meet(checks, NEED_ALWAYS))
		(void)puts("\nA required layer is missing: no program can run.");
	else if (!checks_meet(checks, NEED_STRICT))
		(void)puts("\nA required layer is missing: milliboxd starts only with "
		           "--isolation best-effort, which accepts the loss.");
	else if (optional == 0)
		(void)puts("\nAll required layers are available.");
	else
		(void)printf("\nAll required layers are available; %zu optional layer%s missing.\n",
		             optional, optional == 1 ? " is" : "s are");
}

static void print_text(const struct checks *checks)
{
	static const enum color colors[] = {
		[CHECK_OK] = COLOR_GREEN, [CHECK_MISSING] = COLOR_RED, [CHECK_INFO] = COLOR_GREEN};
	bool in_color = color_is_on(STDOUT_FILENO);
	size_t optional = 0;

	for (size_t i = 0; i < checks->count; i++) {
		const struct check *check = &checks->items[i];
		bool is_optional = check_is_optional(check);
		struct advice advice;
		char state[16];

		optional += is_optional;
		(void)snprintf(state, sizeof(state), "%-8s",
		               is_optional ? "optional" : check_state_name(check->state));
		color_print(stdout, in_color && check->state != CHECK_INFO,
		            is_optional ? COLOR_YELLOW : colors[check->state], state);
		(void)printf(" %-20s ", check->name);
		message_print_safe(stdout, check->value);
		(void)putchar('\n');
		if (check->state != CHECK_MISSING || checks_advise(checks, check, &advice) < 0)
			continue;
		(void)printf("         loss:   %s\n         remedy: %s\n", advice.loss,
		             advice.remedy);
	}
	print_verdict(checks, optional);
}

static json_t *check_json(const struct checks *checks, const struct check *check)
{
	struct advice advice;
	json_t *object = json_pack("{s:s, s:s, s:s}", "name", check->name, "state",
	                           check_state_name(check->state), "value", check->value);

	if (checks_advise(checks, check, &advice) < 0)
		return object;
	(void)json_object_set_new(object, "loss", json_string(advice.loss));
	(void)json_object_set_new(object, "remedy", json_string(advice.remedy));
	if (check_is_optional(check))
		(void)json_object_set_new(object, "optional", json_true());
	return object;
}

static void print_json(const struct checks *checks)
{
	json_t *list = json_array();
	json_auto_t *object =
		json_pack("{s:b, s:b, s:o}", "strict", checks_meet(checks, NEED_STRICT),
	                  "best_effort", checks_meet(checks, NEED_ALWAYS), "checks", list);

	for (size_t i = 0; i < checks->count; i++)
		(void)json_array_append_new(list, check_json(checks, &checks->items[i]));
	message_print_json(object);
}

static int run_doctor(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct doctor_options *options = values;
	cleanup_checks struct checks checks = {0};

	if (host_probe(&checks, err) < 0)
		return -1;
	if (add_daemon(&checks, options, err) < 0)
		return -1;
	if (options->json)
		print_json(&checks);
	else
		print_text(&checks);
	return checks_meet(&checks, NEED_STRICT) ? CLI_OK : CLI_FAILED;
}

#define AT(member) offsetof(struct doctor_options, member)

static const struct option_row rows[] = {
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the checks as JSON"},
	ENDPOINT_ROWS(AT(at)),
};

COMMAND(doctor, "doctor", "", "Check which layers of isolation this host supports", run_doctor,
        rows, struct doctor_options,
        .text = "For each failed check it prints the loss and the remedy. The exit status is 0 "
                "only if all required layers are available.\n");
