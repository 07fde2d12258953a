/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/daemon_status.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "cli/client/daemon.h"
#include "cli/client/listener.h"
#include "cli/exit_status.h"
#include "cli/message.h"
#include "cli/resource.h"
#include "http/status.h"

#define ANSWER_TIMEOUT_S 5
#define LAYERS_MAX       1024

static const struct resource_line lines[] = {
	{"daemon", NULL, NULL},  {"socket", NULL, NULL},  {"url", NULL, NULL},
	{"pid", NULL, NULL},     {"version", NULL, NULL}, {"isolation", NULL, NULL},
	{"missing", NULL, NULL}, {"since", NULL, NULL},   {"log", NULL, NULL},
};

static int add_own_words(struct millibox_client *client, json_t *status, struct error *err)
{
	const struct daemon_call call = {.method = "GET", .path = "/api/v1/daemon"};
	json_auto_t *answer = NULL;
	int http = 0;

	if (daemon_ask(client, &call, &answer, &http, err) < 0)
		return -1;
	if (http == HTTP_OK)
		return json_object_update_missing(status, answer);
	message_show_problem(answer);
	return 0;
}

int daemon_status_read(struct millibox_client *client, json_t **ret_status, struct error *err)
{
	cleanup_listener struct listener listener = LISTENER_INIT;
	const char *address = NULL;
	int running = listener_find(client, &listener, err), ready = 0;
	json_auto_t *status = NULL;

	if (running < 0 || millibox_find(client, &address) < 0)
		return -1;
	status = json_pack("{s:b, s:b, s:s}", "running", running, "ready", false,
	                   address[0] == '/' ? "socket" : "url", address);
	if (listener.pid > 0)
		(void)json_object_set_new(status, "pid", json_integer(listener.pid));
	(void)millibox_set_timeout(client, ANSWER_TIMEOUT_S);
	if (running)
		ready = millibox_ready(client);
	if (ready < 0 && str_equal(millibox_error_code(client), error_text(ERR_UNTRUSTED)))
		return daemon_fail(client, err);
	/* A port that speaks TLS, for instance: the user learns why. */
	if (ready < 0)
		(void)json_object_set_new(status, "error",
		                          json_string(millibox_error_message(client)));
	running = running && ready >= 0;
	(void)json_object_set_new(status, "running", json_boolean(running));
	(void)json_object_set_new(status, "ready", json_boolean(ready > 0));
	if (running && add_own_words(client, status, err) < 0)
		return -1;
	*ret_status = TAKE_PTR(status);
	return 0;
}

/* "3 d 4 h", "4 h 5 min", "5 min 6 s" */
static char *name_duration(double seconds)
{
	static const struct {
		long seconds;
		const char *name;
	} units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	long left = seconds > 0 ? (long)seconds : 0;
	size_t i = 0;

	while (i < ARRAY_SIZE(units) - 1 && left < units[i].seconds)
		i++;
	if (i == ARRAY_SIZE(units) - 1)
		return xasprintf("%ld s", left);
	return xasprintf("%ld %s %ld %s", left / units[i].seconds, units[i].name,
	                 left % units[i].seconds / units[i + 1].seconds, units[i + 1].name);
}

static void set_since(json_t *shown, const json_t *status)
{
	const json_t *uptime = json_object_get(status, "uptime_seconds");
	cleanup_free char *length = name_duration(json_number_value(uptime));
	cleanup_free char *text = xasprintf("%s (%s)", message_text(status, "started_at"), length);

	if (json_is_number(uptime))
		(void)json_object_set_new(shown, "since", json_string(text));
}

static void set_isolation(json_t *shown, const json_t *isolation)
{
	const json_t *missing = json_object_get(isolation, "missing"), *layer;
	cleanup_buf struct buf names = BUF_INIT(LAYERS_MAX);
	size_t i;

	(void)json_object_set(shown, "isolation", json_object_get(isolation, "mode"));
	json_array_foreach (missing, i, layer)
		if (buf_addf(&names, "%s%s", i ? ", " : "", json_string_value(layer)) < 0)
			break; /* full: the first ones are named */
	if (names.len > 0)
		(void)json_object_set_new(shown, "missing", json_stringn(names.data, names.len));
}

static void print_text(const json_t *status)
{
	bool is_ready = json_is_true(json_object_get(status, "ready"));
	json_auto_t *shown = json_deep_copy(status);

	(void)json_object_set_new(shown, "daemon", json_string(is_ready ? "ready" : "not ready"));
	(void)json_object_del(shown, "isolation");
	set_isolation(shown, json_object_get(status, "isolation"));
	set_since(shown, status);
	resource_print_object(shown, lines, ARRAY_SIZE(lines));
}

int daemon_status_show(const json_t *status, bool as_json)
{
	if (as_json)
		message_print_json(status);
	else if (json_is_true(json_object_get(status, "running")))
		print_text(status);
	else if (json_object_get(status, "url"))
		message_show("no daemon answers: %s", message_text(status, "error"));
	else
		message_show("no daemon listens at %s; 'millibox up -d' starts one",
		             message_text(status, "socket"));
	return json_is_true(json_object_get(status, "ready")) ? CLI_OK : CLI_FAILED;
}
