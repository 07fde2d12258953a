/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include <string.h>

/*
 * Theory of operation. An ephemeral session lends its name and settings: each execution is one of
 * the exec service, with a box, a deadline and an outcome of its own. What it says goes into the
 * record.
 */

static void on_start(void *ctx, const char *execution_id attr_unused)
{
	struct session_job *job = ctx;

	job->phase = JOB_RUNNING;
	session_job_unqueue(job);
	run_record_started(job->record);
}

static void on_output(void *ctx, enum output_stream stream, const char *data, size_t len)
{
	struct session_job *job = ctx;

	run_record_add_output(job->record, stream, data, len);
}

/* The outcome is borrowed. Its output the record has; the report is what is left to copy. */
static void on_end(void *ctx, const struct outcome *outcome)
{
	struct session_job *job = ctx;
	struct outcome copy = *outcome;

	copy.out = copy.err = BUF_INIT(0);
	buf_init(&copy.report, outcome->report.max);
	/* As long as what it is copied from: it fits. */
	(void)!buf_add(&copy.report, outcome->report.data, outcome->report.len);
	artifacts_copy(&outcome->artifacts, &copy.artifacts);
	copy.queue_us += job->admitted_us - job->arrived_us;
	run_record_ended(job->record, &copy, false);
	job->exec = NULL;
	session_job_finish(job);
}

static void on_error(void *ctx, const struct error *err)
{
	struct session_job *job = ctx;

	job->exec = NULL;
	session_job_fail(job, err);
}

static bool names_same(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return len == strcspn(b, "=") && memcmp(a, b, len) == 0;
}

static bool is_named(char *const *env, const char *variable)
{
	for (; env && *env; env++)
		if (names_same(*env, variable))
			return true;
	return false;
}

/* The session's variables, except those the execution has its own of. Borrowed strings. */
static char **merge_env(char *const *session, char *const *own)
{
	size_t most = str_list_count(session) + (own ? str_list_count(own) : 0);
	char **env = xcalloc(most + 1, sizeof(*env));
	size_t n = 0;

	for (; *session; session++)
		if (!is_named(own, *session))
			env[n++] = *session;
	for (; own && *own; own++)
		env[n++] = *own;
	return env;
}

void session_once_start(struct session_job *job)
{
	struct session_service *s = job->session->service;
	const struct run_events events = {job, on_start, on_output, on_end, on_error};
	cleanup_free char **env = merge_env(job->session->env, job->request->env);
	struct run_request request = *job->request;
	struct run_record_info info;
	struct error err = {0};

	run_record_info(job->record, &info);
	request.code = (char *)info.code;
	request.code_len = info.code_len;
	request.env = env;
	request.tenant = job->session->tenant;
	job->phase = JOB_STARTING;
	job->admitted_us = clock_us();
	if (run_begin(s->config.runs, &request, &events, &job->session->stack, &job->exec, &err) <
	    0)
		session_job_fail(job, &err);
}

static void on_begun(void *ctx, struct run_record *e, const struct error *err)
{
	struct session_job *job = ctx;
	struct session *session = job->session;

	(void)e;
	job->held = false;
	if (err)
		session_job_fail(job, err);
	session_pump(session);
}

/* Return: whether it may begin now; if not, it has ended, or on_begun follows. */
bool session_once_may_begin(struct session_job *job)
{
	struct error err = {0};
	int r;

	if (job->session->mode == SESSION_PERSISTENT)
		return true;
	r = run_record_begin(job->record, on_begun, job, &err);
	job->held = r > 0;
	if (r < 0)
		session_job_fail(job, &err);
	return r == 0;
}
