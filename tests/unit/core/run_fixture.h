/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a service on a fake driver (two places, two waiting, 8 bytes of output), and a caller that
 * records its callbacks. For the tests of run.c and run_service.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/run/run_internal.h"
#include "core/run/run_record_internal.h"
#include "core_fixture.h"
#include "driver/fake.h"
#include "io/loop.h"
#include "loop_pass.h"

#define EXEC_ID 1

/* Callbacks of one caller. */
struct heard {
	struct run *exec;
	struct run_watch *watch;
	int starts, ends, errors;
	char id[40];
	char streamed[64];
	struct outcome outcome; /* buffers are copies below */
	char out[64], err[64], report[64];
	struct error error;
	bool cancel_on_start, cancel_on_output;
};

struct fixture {
	struct loop *loop;
	struct driver *driver;
	struct runners *runners;
	struct config *config;
	struct run_service *service;
	struct run_request request; /* strings are not owned here */
	struct error err;
	int drained;
};

static inline void keep(char *place, size_t size, const struct buf *b)
{
	(void)snprintf(place, size, "%s", b->data ? b->data : "");
}

static inline void hear_output(struct heard *h, const struct run_event *event)
{
	size_t n = strlen(h->streamed);

	(void)snprintf(h->streamed + n, sizeof(h->streamed) - n, "%d%.*s",
	               event->kind == RUN_EVENT_STDERR, (int)event->len, event->data);
	if (h->cancel_on_output)
		run_unwatch(h->watch);
}

static inline void hear_end(struct heard *h, const struct run_record_info *run)
{
	if (!run->outcome) {
		h->errors++;
		h->error = *run->failure;
		return;
	}
	assert_null(run->failure);
	h->ends++;
	h->outcome = *run->outcome;
	keep(h->out, sizeof(h->out), &run->outcome->out);
	keep(h->err, sizeof(h->err), &run->outcome->err);
	keep(h->report, sizeof(h->report), &run->outcome->report);
}

static inline void on_event(void *ctx, struct run_record *record, const struct run_event *event)
{
	struct heard *h = ctx;
	struct run_record_info run;

	run_record_info(record, &run);
	assert_int_equal(event->number, 0);
	assert_null(run.session_id);
	if (event->kind == RUN_EVENT_END) {
		hear_end(h, &run);
	} else if (event->kind == RUN_EVENT_START) {
		h->starts++;
		assert_int_equal(str_copy(h->id, sizeof(h->id), run.id), 0);
		if (h->cancel_on_start)
			run_unwatch(h->watch);
	} else {
		hear_output(h, event);
	}
}

static inline void on_drained(void *ctx)
{
	struct fixture *f = ctx;

	f->drained++;
}

/* @runners is taken. */
static inline int setup_with(void **state, struct runners *runners, const char *pools)
{
	const struct config_override settings[] = {{"admission.max_running", "2"},
	                                           {"admission.max_queued", "2"},
	                                           {"admission.drain_timeout", "50ms"},
	                                           {"limits.output", "8"},
	                                           {"pools.enabled", pools}};
	struct fixture *f = NEW(struct fixture);

	f->loop = loop_new();
	f->driver = fake_driver_new(f->loop);
	f->runners = runners;
	f->config = config_load(NULL, settings, ARRAY_SIZE(settings), &f->err);
	if (!f->config)
		return -1;
	f->service = run_service_new(&(struct run_service_config){
		.config = f->config, .driver = f->driver, .runners = f->runners, .loop = f->loop});
	f->request = (struct run_request){
		.language = (char *)"demo", .code = (char *)"print", .code_len = 5};
	*state = f;
	return 0;
}

static inline int setup(void **state)
{
	return setup_with(state, fixture_runners(), "false");
}

static inline void settle(struct fixture *f)
{
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	run_service_free(f->service);
	settle(f);
	driver_free(f->driver);
	settle(f);
	loop_free(f->loop);
	runners_free(f->runners);
	config_free(f->config);
	free(f);
	return 0;
}

static inline int try_start(struct fixture *f, struct heard *h)
{
	struct run_record *record;

	*h = (struct heard){.cancel_on_start = h->cancel_on_start,
	                    .cancel_on_output = h->cancel_on_output};
	error_clear(&f->err);
	if (run_start(f->service, &f->request, &record, &f->err) < 0)
		return -1;
	h->exec = record->control_ctx;
	h->watch = run_watch(record, 0, on_event, h);
	return 0;
}

static inline void start(struct fixture *f, struct heard *h)
{
	if (try_start(f, h) < 0)
		fail_msg("%s", f->err.msg);
	assert_int_equal(h->ends + h->errors + h->starts, 0);
}

static inline struct box *box_at(struct fixture *f, size_t index)
{
	struct box *box = fake_box_at(f->driver, index);

	assert_non_null(box);
	return box;
}

/* A box whose program runs. */
static inline struct box *run(struct fixture *f, size_t index)
{
	struct box *box = box_at(f, index);

	(void)fake_exec_last(box);
	fake_ready(box);
	fake_started(box, EXEC_ID);
	return box;
}

static inline void done(struct box *box, int status)
{
	const struct exec_facts facts = {
		.status = status, .duration_us = 1500, .cpu_user_us = 300, .cpu_system_us = 40};

	fake_done(box, EXEC_ID, &facts);
}

static inline void wait_for(struct fixture *f, const int *count)
{
	uint64_t deadline = clock_us() + 5 * USEC_PER_SEC;

	while (*count == 0 && clock_us() < deadline)
		loop_pass(f->loop, USEC_PER_MS);
	assert_int_equal(*count, 1);
}

static inline struct run_service_stats stats(struct fixture *f)
{
	struct run_service_stats s;

	run_service_stats(f->service, &s);
	return s;
}

static inline void expect_idle(struct fixture *f)
{
	settle(f);
	assert_int_equal(stats(f).running, 0);
	assert_int_equal(stats(f).queued, 0);
	assert_int_equal(stats(f).boxes, 0);
	assert_int_equal(fake_box_count(f->driver), 0);
}
