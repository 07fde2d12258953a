/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the whole of api/ over a socket, with the real core on the fake driver. The test plays the
 * client and the agent. Languages: "python" has a runner that stays, "shell" has none.
 */

#include "peer.h"

#include "api/router.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/run/run.h"
#include "core/session/session.h"
#include "core_fixture.h"
#include "daemon/dialects.h"
#include "driver/fake.h"

struct fixture {
	struct config *config;
	struct loop *loop;
	struct driver *driver;
	struct runners *runners;
	struct run_service *runs;
	struct run_records *executions;
	struct session_service *sessions;
	struct router *router;
	struct http_server *server;
	int port;
	size_t printed[OUTPUT_COUNT]; /* bytes, by the run that was begun last */
};

static inline struct runners *api_runners(void)
{
	char dir[] = "/tmp/millibox-api-XXXXXX";
	struct error err = {0};
	struct runners *r;

	assert_non_null(mkdtemp(dir));
	fixture_put(
		dir, "python",
		"name: python\ntitle: Python\nsource: main.py\ncommand: [/bin/sh, '{source}']\n"
		"session_command: [/bin/sh, '{runner}/stay']\nprogram: /bin/sh\nreport: true\n");
	fixture_put(dir, "shell",
	            "name: shell\ntitle: Shell\nsource: main.sh\n"
	            "command: [/bin/sh, -e, '{source}']\nprogram: /bin/sh\n");
	r = runners_load(dir, NULL, &err);
	if (!r)
		fail_msg("%s", err.msg);
	fixture_drop(dir, "python");
	fixture_drop(dir, "shell");
	(void)rmdir(dir);
	return r;
}

static inline void open_core(struct fixture *f)
{
	static const struct config_override settings[] = {{"admission.max_running", "1"},
	                                                  {"admission.max_queued", "0"},
	                                                  {"pools.enabled", "false"}};
	struct error err = {0};

	f->loop = loop_new();
	f->driver = fake_driver_new(f->loop);
	f->runners = api_runners();
	f->config = config_load(NULL, settings, ARRAY_SIZE(settings), &err);
	if (!f->config)
		fail_msg("%s", err.msg);
	/* Smaller than the settings allow. */
	f->config->max_body_bytes = 1000;
	f->config->max_code_bytes = 50;
	f->config->max_answers_bytes = 1 << 20;
	f->executions = run_records_new(f->loop, 100, 1 << 20);
	f->runs = run_service_new(&(struct run_service_config){
		.config = f->config, .driver = f->driver, .runners = f->runners, .loop = f->loop});
	f->sessions = session_service_new(&(struct session_service_config){
		.config = f->config,
		.driver = f->driver,
		.runners = f->runners,
		.loop = f->loop,
		.runs = f->runs,
		.executions = f->executions,
	});
}

/* @http: limits; the rest is filled in. */
static inline int open_api(void **state, struct http_server_config *http)
{
	struct fixture *f = NEW(struct fixture);
	struct error err = {0};
	char name[64];
	int fd = -1;

	open_core(f);
	f->router = router_new(&(struct router_config){
		.dialects = dialects,
		.config = f->config,
		.loop = f->loop,
		.runs = f->runs,
		.sessions = f->sessions,
		.executions = f->executions,
		.runners = f->runners,
	});
	http->loop = f->loop;
	http->handlers = router_handlers(f->router);
	http->max_header_bytes = 8192;
	http->max_bodies_bytes = 10000;
	http->request_timeout_us = http->idle_timeout_us = 60 * USEC_PER_SEC;
	f->server = http_server_new(http);
	assert_int_equal(http_listen_tcp("127.0.0.1:0", &fd, &err), 0);
	assert_int_equal(http_listen_name(fd, "http", name, sizeof(name)), 0);
	assert_int_equal(sscanf(name, "http://127.0.0.1:%d", &f->port), 1);
	assert_int_equal(http_server_listen(f->server, fd, NULL, &err), 0);
	*state = f;
	return 0;
}

static inline void settle(struct fixture *f)
{
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
}

static inline int close_api(void **state)
{
	struct fixture *f = *state;

	http_server_free(f->server);
	router_free(f->router);
	session_service_free(f->sessions);
	run_service_free(f->runs);
	settle(f);
	driver_free(f->driver);
	settle(f);
	run_records_free(f->executions);
	loop_free(f->loop);
	runners_free(f->runners);
	config_free(f->config);
	free(f);
	return 0;
}

/* The agent. */

/* The oldest box. */
static inline struct box *box_of(const struct fixture *f)
{
	struct box *box = fake_box_at(f->driver, 0);

	assert_non_null(box);
	return box;
}

/* Begin what the box was given last; its runner too, if it is new. */
static inline const struct fake_exec *begin_run(struct fixture *f)
{
	struct box *box = box_of(f);
	const struct fake_exec *run = fake_exec_last(box);

	assert_non_null(run);
	assert_non_null(run->argv);
	assert_false(run->keep);
	if (run->runner && run->id == run->runner + 1)
		fake_started(box, run->runner);
	fake_started(box, run->id);
	memset(f->printed, 0, sizeof(f->printed));
	return run;
}

static inline void print_bytes(struct fixture *f, const struct fake_exec *run,
                               enum output_stream stream, const char *data, size_t len)
{
	f->printed[stream] += len;
	fake_output(box_of(f), run->id, stream, data, len);
}

static inline void print(struct fixture *f, const struct fake_exec *run, enum output_stream stream,
                         const char *text)
{
	print_bytes(f, run, stream, text, strlen(text));
}

static inline void end_run(const struct fixture *f, const struct fake_exec *run)
{
	fake_done(box_of(f), run->id,
	          &(struct exec_facts){.duration_us = 1500,
	                               .stdout_bytes = f->printed[OUTPUT_STDOUT],
	                               .stderr_bytes = f->printed[OUTPUT_STDERR]});
}

/* It prints "hi" and ends well. */
static inline void greet_and_end(struct fixture *f, const struct fake_exec *run)
{
	print(f, run, OUTPUT_STDOUT, "hi");
	end_run(f, run);
}

/* The code of a run. */
static inline const char *code_of(const struct fake_exec *run)
{
	for (size_t i = 0; i < run->files_count; i++)
		if (run->files[i].source)
			return run->files[i].data;
	return "(none)";
}
