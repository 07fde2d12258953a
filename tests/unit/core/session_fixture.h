/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: sessions on a fake driver: two places, eight bytes of output, queues of three, four
 * sessions. Languages: "python" has a resident runner, "demo" has none. The tests play the agent.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/session/session.h"
#include "core/store/store.h"
#include "core_fixture.h"
#include "driver/fake.h"
#include "io/loop.h"
#include "loop_pass.h"

struct fixture {
	struct loop *loop;
	struct driver *driver;
	struct runners *runners;
	struct config *config;
	struct run_service *runs;
	struct run_records *executions;
	struct session_service *service;
	struct tenants *tenants;         /* NULL: no quotas */
	const struct policies *policies; /* NULL: settings alone decide */
	struct session_request request;  /* strings are not owned here */
	struct run_request code;         /* nor here */
	struct error err;
	int drained;
};

static inline struct runners *session_runners(void)
{
	char dir[] = "/tmp/millibox-core-XXXXXX";
	struct error err = {0};
	struct runners *r;

	assert_non_null(mkdtemp(dir));
	fixture_put(dir, "python",
	            "name: python\ntitle: Python\nsource: main.py\ncommand: [/bin/sh, '{source}']\n"
	            "session_command: [/bin/sh, '{runner}/stay']\nenv: {DEMO: '1'}\n"
	            "program: /bin/sh\nreport: true\n");
	fixture_put(dir, "demo",
	            "name: demo\ntitle: Demo\nsource: main\ncommand: [/bin/sh, '{source}']\n"
	            "program: /bin/sh\n");
	r = runners_load(dir, NULL, &err);
	if (!r)
		fail_msg("%s", err.msg);
	fixture_drop(dir, "python");
	fixture_drop(dir, "demo");
	(void)rmdir(dir);
	return r;
}

/* @store NULL: none. */
static inline void make_session_service(struct fixture *f, struct store *store)
{
	f->service = session_service_new(&(struct session_service_config){
		.config = f->config,
		.driver = f->driver,
		.runners = f->runners,
		.loop = f->loop,
		.runs = f->runs,
		.executions = f->executions,
		.store = store,
	});
}

/* @build_timeout_us 0: the default. */
static inline void make_services(struct fixture *f, uint64_t build_timeout_us)
{
	f->runs = run_service_new(&(struct run_service_config){
		.config = f->config,
		.driver = f->driver,
		.runners = f->runners,
		.loop = f->loop,
		.tenants = f->tenants,
		.policies = f->policies,
		.build_timeout_us = build_timeout_us,
	});
	make_session_service(f, NULL);
}

static inline int setup(void **state)
{
	static const struct config_override settings[] = {
		{"admission.max_running", "2"}, {"admission.max_queued", "2"},
		{"limits.output", "8"},         {"sessions.max", "4"},
		{"sessions.queue", "3"},        {"pools.enabled", "false"},
	};
	struct fixture *f = NEW(struct fixture);

	f->loop = loop_new();
	f->driver = fake_driver_new(f->loop);
	f->runners = session_runners();
	f->config = config_load(NULL, settings, ARRAY_SIZE(settings), &f->err);
	if (!f->config)
		return -1;
	f->executions = run_records_new(f->loop, 100, 1 << 20);
	make_services(f, 0);
	f->request = (struct session_request){.mode = SESSION_PERSISTENT};
	f->code = (struct run_request){.code = (char *)"x = 1", .code_len = 5};
	*state = f;
	return 0;
}

static inline void settle(struct fixture *f)
{
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
}

/* Let @us pass on the loop. */
static inline void pass(struct fixture *f, uint64_t us)
{
	loop_pass(f->loop, us);
	settle(f);
}

static inline void end_fixture(struct fixture *f, struct store *store)
{
	session_service_free(f->service);
	run_service_free(f->runs);
	settle(f);
	driver_free(f->driver);
	settle(f);
	run_records_free(f->executions);
	store_close(store);
	loop_free(f->loop);
	runners_free(f->runners);
	config_free(f->config);
	free(f);
}

static inline int teardown(void **state)
{
	end_fixture(*state, NULL);
	return 0;
}

static inline void on_drained(void *ctx)
{
	struct fixture *f = ctx;

	f->drained++;
}

static inline struct session_info info_of(const struct session *session)
{
	struct session_info info;

	session_info(session, &info);
	return info;
}

static inline enum session_state state_of(const struct session *session)
{
	return info_of(session).state;
}

static inline struct run_record_info record_of(const struct run_record *e)
{
	struct run_record_info info;

	run_record_info(e, &info);
	return info;
}

/* The execution has ended with @status_. */
#define expect_status(e, status_)                                                                  \
	do {                                                                                       \
		struct run_record_info info_ = record_of(e);                                       \
		assert_int_equal(info_.state, RUN_RECORD_ENDED);                                   \
		assert_non_null(info_.outcome);                                                    \
		assert_string_equal(outcome_status_name(info_.outcome->status),                    \
		                    outcome_status_name(status_));                                 \
	} while (0)

#define expect_state(session, state_)                                                              \
	assert_string_equal(session_state_name(state_of(session)), session_state_name(state_))

/* The call failed with @code_ and a message. */
#define expect_refused(f, call, code_)                                                             \
	do {                                                                                       \
		error_clear(&(f)->err);                                                            \
		assert_int_equal(call, -1);                                                        \
		assert_string_equal(error_name((f)->err.code), error_name(code_));                 \
		assert_true((f)->err.msg[0] != '\0');                                              \
		error_clear(&(f)->err);                                                            \
	} while (0)

static inline struct session *again(struct fixture *f, bool expect_reused)
{
	struct session *session = NULL;
	bool reused = !expect_reused;

	error_clear(&f->err);
	if (session_create(f->service, &f->request, &session, &reused, &f->err) < 0)
		return NULL;
	assert_int_equal(reused, expect_reused);
	return session;
}

static inline struct session *create(struct fixture *f)
{
	struct session *session = again(f, false);

	if (!session)
		fail_msg("%s", f->err.msg);
	return session;
}

static inline int try_create(struct fixture *f)
{
	return again(f, false) ? 0 : -1;
}

static inline struct box *box_at(struct fixture *f, size_t index)
{
	struct box *box = fake_box_at(f->driver, index);

	assert_non_null(box);
	return box;
}

static inline struct box *box_of(struct fixture *f, const struct session *session)
{
	for (size_t i = 0; fake_box_at(f->driver, i); i++)
		if (str_equal(box_id(box_at(f, i)), info_of(session).box_id))
			return box_at(f, i);
	fail_msg("no box");
	return NULL;
}

/* A session whose box is ready. */
static inline struct session *ready(struct fixture *f)
{
	struct session *session = create(f);

	/* The scheduler makes no box for a while after one that took long. */
	while (!info_of(session).box_id)
		loop_run_once(f->loop, true);
	fake_ready(box_of(f, session));
	expect_state(session, SESSION_READY);
	return session;
}

static inline struct run_record *execute(struct fixture *f, struct session *session)
{
	struct run_record *e = NULL;

	error_clear(&f->err);
	if (session_execute(session, &f->code, &e, &f->err) < 0)
		return NULL;
	return e;
}

static inline int try_execute(struct fixture *f, struct session *session)
{
	return execute(f, session) ? 0 : -1;
}

static inline size_t running(struct fixture *f)
{
	struct run_service_stats stats;

	run_service_stats(f->runs, &stats);
	return stats.running;
}
