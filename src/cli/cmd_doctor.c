/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include <jansson.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/client/endpoint.h"
#include "cli/client/program.h"
#include "cli/common_options.h"
#include "cli/doctor.h"
#include "cli/message.h"
#include "http/client.h"

#define PROBE_OUTPUT_MAX  (256 * 1024)
#define DAEMON_TIMEOUT_US (2 * USEC_PER_SEC)

struct doctor_options {
	struct endpoint_options at;
	bool json;
};

/* What the runners need. A box sees the host's /usr and nothing from elsewhere. */
struct runtime {
	const char *check;
	const char *path;
};

static const struct runtime runtimes[] = {
	{"runtime.python", "/usr/bin/python3"},
	{"runtime.shell", "/usr/bin/bash"},
};

static int add_probe(struct checks *checks, struct error *err)
{
	cleanup_free char *engine = program_find_engine(err);
	cleanup_buf struct buf out = BUF_INIT(PROBE_OUTPUT_MAX);
	const char *const argv[] = {engine, "--probe", NULL};
	cleanup_free char *text = NULL;
	int status = 0;

	if (!engine || program_read(argv, &out, &status, err) < 0)
		return -1;
	text = buf_take(&out, NULL);
	if (checks_parse(checks, text) < 0)
		return error_set(err, ERR_PROTOCOL, 0, "%s --probe printed what is no probe",
		                 engine);
	if (checks->count == 0)
		return error_set(err, ERR_PROTOCOL, 0, "%s --probe found nothing (status %d)",
		                 engine, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}

static void add_runtimes(struct checks *checks)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		bool is_there = access(runtimes[i].path, X_OK) == 0;

		checks_add(checks, runtimes[i].check, is_there ? CHECK_OK : CHECK_MISSING,
		           runtimes[i].path);
	}
}

static int add_daemon(struct checks *checks, const struct doctor_options *options,
                      struct error *err)
{
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_free char *url = NULL;
	cleanup_free char *value = NULL;
	struct http_client_request request = {.method = "GET", .timeout_us = DAEMON_TIMEOUT_US};
	struct error why = {0};
	int status = 0;

	if (endpoint_find(&options->at, &endpoint, err) < 0)
		return -1;
	url = xasprintf("%s/readyz", endpoint.url);
	request.url = url;
	request.socket_path = endpoint.socket;
	request.ca_file = endpoint.ca_file;
	request.untrusted = ENDPOINT_UNTRUSTED;
	/* None is no fault: "millibox run" starts one for itself. Hence the error is a finding. */
	if (http_client_run(&request, &status, &why) < 0)
		value = why.code == ERR_UNTRUSTED
		                ? xasprintf("%s", why.msg)
		                : xasprintf("none at %s",
		                            endpoint.socket ? endpoint.socket : endpoint.url);
	else
		value = xasprintf("%s at %s", status == 200 ? "ready" : "not ready",
		                  endpoint.socket ? endpoint.socket : endpoint.url);
	checks_add(checks, "daemon", CHECK_INFO, value);
	return 0;
}

static void print_verdict(bool strict, size_t optional)
{
	if (!strict)
		(void)puts("\nThis host lacks a required layer: strict mode refuses to run.");
	else if (optional == 0)
		(void)puts("\nThis host can run boxes with every required layer.");
	else
		(void)printf("\nThis host can run boxes with every required layer; %zu optional "
		             "layer%s missing.\n",
		             optional, optional == 1 ? " is" : "s are");
}

static void print_text(const struct checks *checks, bool strict)
{
	bool is_root = geteuid() == 0;
	size_t optional = 0;

	for (size_t i = 0; i < checks->count; i++) {
		const struct check *check = &checks->items[i];
		bool is_optional = check_is_optional(check, is_root);
		struct advice advice;

		optional += is_optional;
		(void)printf("%-8s %-20s ",
		             is_optional ? "optional" : check_state_name(check->state),
		             check->name);
		message_print_safe(stdout, check->value);
		(void)putchar('\n');
		if (check->state != CHECK_MISSING || checks_advise(checks, check, &advice) < 0)
			continue;
		(void)printf("         lost:   %s\n         remedy: %s\n", advice.loss,
		             advice.remedy);
	}
	print_verdict(strict, optional);
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
	if (check_is_optional(check, geteuid() == 0))
		(void)json_object_set_new(object, "optional", json_true());
	return object;
}

static void print_json(const struct checks *checks, bool strict)
{
	json_t *list = json_array();
	json_t *object = json_pack("{s:b, s:o}", "strict", strict, "checks", list);
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < checks->count; i++)
		(void)json_array_append_new(list, check_json(checks, &checks->items[i]));
	text = json_dumps(object, JSON_INDENT(2));
	(void)puts(text ? text : "");
	json_decref(object);
}

static int run(const void *values, const struct args *args, struct error *err)
{
	const struct doctor_options *options = values;
	cleanup_checks struct checks checks = {0};
	bool strict;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "'%s' is one word too many", args->words[0]);
		return CLI_USAGE;
	}
	if (add_probe(&checks, err) < 0)
		return CLI_ERROR;
	add_runtimes(&checks);
	if (add_daemon(&checks, options, err) < 0)
		return CLI_USAGE;
	strict = checks_are_strict(&checks, geteuid() == 0);
	if (options->json)
		print_json(&checks, strict);
	else
		print_text(&checks, strict);
	return strict ? CLI_OK : CLI_FAILED;
}

#define AT(member) offsetof(struct doctor_options, member)

static const struct option_row rows[] = {
	{"json", 0, OPTION_FLAG, AT(json), NULL, "print the findings as JSON"},
	ENDPOINT_ROWS(AT(at)),
};

const struct command command_doctor = {
	.name = "doctor",
	.arguments = "",
	.summary = "Check what this host offers for isolation",
	.text = "For each check that fails: what is lost without it, and what to do. The exit "
		"status is 0\n"
		"only if boxes can be built with every required layer.\n",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct doctor_options),
	.run = run,
};
