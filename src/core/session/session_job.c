/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/env.h"
#include "core/language/runners.h"
#include "core/session/session_internal.h"
#include "core/session/session_label.h"
#include "core/session/session_resume.h"
#include "core/template/template.h"
#include "io/loop.h"

/*
 * Theory of operation. The deadline is ours alone. A runner that stays is first interrupted: if the
 * run then ends, its variables are safe and the session goes on. If not, the runner is killed with
 * all it started, and the next execution gets a new one in the same box. A program of its own has
 * nothing to save and is killed at once. An agent that does not even report a kill within its time
 * has been stopped by what it runs, or taken over: then the box goes.
 */

#define SOURCE_LEN 80

void session_job_set_timer(struct session *session, uint64_t delay_us)
{
	session->job_due_us = delay_us ? clock_us() + delay_us : 0;
	if (delay_us)
		timer_start(session->job_timer, delay_us);
	else
		timer_stop(session->job_timer);
}

void session_job_start(struct session_job *job)
{
	struct error err = {0};
	int r = scheduler_enter(job->session->service->scheduler, &job->entry, clock_us(), &err);

	job->phase = JOB_WAITING;
	if (r == 0)
		session_job_hand_over(job);
	else if (r < 0)
		session_job_fail(job, &err);
}

/* The runner's environment is the session's; of a program, the execution's too. */
static char **make_env(const struct session_job *job, char *const *own)
{
	const struct runner *language = job->decision.runner;
	cleanup_str_list char **shared = template_env(job->session->template, job->session->env);
	cleanup_str_list char **env = env_make(language->env, shared);

	return env_make(env, own);
}

/* What a runner is told: the variables of this run, "", its arguments. Borrowed strings. */
static const char **make_words(const struct run_request *request)
{
	size_t variables = request->env ? str_list_count(request->env) : 0;
	size_t args = request->args ? str_list_count(request->args) : 0;
	const char **words = xcalloc(variables + 1 + args + 1, sizeof(*words));

	for (size_t i = 0; i < variables; i++)
		words[i] = request->env[i];
	words[variables] = "";
	for (size_t i = 0; i < args; i++)
		words[variables + 1 + i] = request->args[i];
	return words;
}

static int start_runner(struct session_job *job, struct session_runner *runner, struct error *err)
{
	struct session *session = job->session;
	const struct policy_command command = {
		.runner = runner->language,
		.template = session->template,
		.command = job->decision.session_command,
		.source = runner->language->source,
		.args = runner->language->preload && session->template
	                        ? session->template->spec.preload
	                        : NULL,
	};
	cleanup_str_list char **argv = policy_argv(&command);
	cleanup_str_list char **env = make_env(job, NULL);
	const struct exec_plan plan = {
		.id = session->last_id + 1,
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.cwd = "",
		.keep = true,
		.label = runner->language->name,
	};

	if (box_exec(session->box, &plan, err) < 0)
		return error_wrap(err, "start the runner");
	runner->id = ++session->last_id;
	return 0;
}

/* The living runner of the job's language. */
static struct session_runner *get_runner(struct session_job *job, struct error *err)
{
	struct session *session = job->session;
	struct session_runner *runner = session_runner_of(session, job->decision.runner);

	if (!runner) {
		runner = NEW(struct session_runner);
		runner->language = job->decision.runner;
		list_append(&session->runners, &runner->node);
	}
	if (runner->id == 0 && start_runner(job, runner, err) < 0)
		return NULL;
	return runner;
}

static int hand_to_runner(struct session_job *job, const struct run_plan *common, struct error *err)
{
	struct session_runner *runner = get_runner(job, err);
	cleanup_free const char **words = make_words(job->request);
	struct run_plan plan = *common;

	if (!runner)
		return -1;
	plan.id = job->session->last_id + 1;
	plan.runner = runner->id;
	plan.args = words;
	if (box_run(job->session->box, &plan, err) < 0)
		return -1;
	job->id = ++job->session->last_id;
	job->runner = runner;
	job->runner_id = runner->id;
	job->reset |= runner->reset_due;
	job->dead_runner = runner->dead_id;
	runner->reset_due = false;
	runner->dead_id = 0;
	return 0;
}

static int hand_to_program(struct session_job *job, const struct run_plan *common,
                           struct error *err)
{
	const struct runner *language = job->decision.runner;
	const struct policy_command command = {
		.runner = language,
		.template = job->session->template,
		.command = template_command(job->session->template, language),
		.source = common->source,
		.args = job->request->args,
	};
	cleanup_str_list char **argv = policy_argv(&command);
	cleanup_str_list char **env = make_env(job, job->request->env);
	const struct exec_plan plan = {
		.id = job->session->last_id + 1,
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.cwd = job->request->cwd ? job->request->cwd : "",
		.files = common->files,
		.files_count = common->files_count,
		.stdout_max = common->stdout_max,
		.stderr_max = common->stderr_max,
		.report_max = common->report_max,
		.stdin_open = common->stdin_open,
		.label = common->label,
	};

	if (box_exec(job->session->box, &plan, err) < 0)
		return -1;
	job->id = ++job->session->last_id;
	return 0;
}

static int give_stdin(const struct session_job *job, struct error *err)
{
	const struct run_request *request = job->request;
	struct box *box = job->session->box;

	if (request->stdin_len > 0 &&
	    box_stdin(box, job->id, request->stdin_data, request->stdin_len, err) < 0)
		return -1;
	if (request->stdin_len > 0 && !request->stdin_open)
		return box_stdin_end(box, job->id, err);
	return 0;
}

/* run7.py: a name of its own in the life of the box, retries and other daemons included, with the
 * extension its language expects. */
static void name_source(struct session_job *job, char ret_name[SOURCE_LEN])
{
	const char *extension = strrchr(job->decision.runner->source, '.');

	/* The manifest's file names are short: it fits. */
	(void)snprintf(ret_name, SOURCE_LEN, "run%u%s", job->session->last_id + 1,
	               extension ? extension : "");
}

static void name_job(const struct session_job *job, const char *id,
                     char ret_label[BOX_LABEL_MAX + 1])
{
	struct session_label label = {.queue_us = job->outcome.queue_us, .before = job->before};

	(void)!str_copy(label.id, sizeof(label.id), id); /* ids are shorter */
	session_label_make(&label, ret_label);
}

static int hand_over(struct session_job *job, struct error *err)
{
	const struct run_request *request = job->request;
	char name[SOURCE_LEN], label[BOX_LABEL_MAX + 1];
	struct run_record_info info;
	struct exec_source source = {.name = name};
	cleanup_free struct exec_file *files = NULL;
	cleanup_free char *packed = NULL;
	struct run_plan common = {
		.source = name,
		.files_count = request->files_count + 1,
		/* One byte more than is kept: whether output was cut is then seen, not guessed. */
		.stdout_max = job->decision.output_bytes + 1,
		.stderr_max = job->decision.output_bytes + 1,
		.report_max = job->decision.report_bytes,
		.stdin_open = request->stdin_len > 0 || request->stdin_open,
	};

	run_record_info(job->record, &info);
	name_job(job, info.id, label);
	common.label =
		job->session->spec.keep ? label : NULL; /* only a box that is kept takes it */
	source.code = info.code;
	source.len = info.code_len;
	packed = exec_source_ask(&source, request->ask);
	name_source(job, name);
	common.files = files = run_request_files(request, &source);
	return job->decision.session_command && !request->fresh &&
	                       job->session->mode == SESSION_PERSISTENT
	               ? hand_to_runner(job, &common, err)
	               : hand_to_program(job, &common, err);
}

void session_job_hand_over(struct session_job *job)
{
	struct session *session = job->session;
	struct error err = {0};

	if (job->phase == JOB_WAITING) {
		job->admitted_us = clock_us();
		job->outcome.queue_us = job->admitted_us - job->arrived_us;
		box_counters(session->box, COUNTERS_FOR_BASELINE, &job->before);
		session_job_unqueue(job);
	}
	job->phase = JOB_STARTING;
	session_job_set_timer(session, session->service->config.runs->config.build_timeout_us);
	if (hand_over(job, &err) < 0)
		session_job_fail(job, &err);
	else if (give_stdin(job, &err) < 0)
		session_box_lost(session, &err); /* it is there already, and must not run without */
}

/* Of one that started under an earlier daemon: how long ago. */
static uint64_t elapsed_us(const struct session_job *job)
{
	uint64_t now = clock_real_ms();
	struct run_record_info info;

	run_record_info(job->record, &info);
	if (!job->resumed || info.started_ms == 0 || info.started_ms + info.paused_ms > now)
		return 0;
	return (now - info.started_ms - info.paused_ms) * USEC_PER_MS;
}

/* From its turn to its start; of one that started under an earlier daemon what the times say. */
static uint64_t start_us(const struct session_job *job)
{
	struct run_record_info info;
	uint64_t both_us;

	if (!job->resumed)
		return job->started_us - job->admitted_us;
	run_record_info(job->record, &info);
	both_us = info.started_ms > info.created_ms
	                  ? (info.started_ms - info.created_ms) * USEC_PER_MS
	                  : 0;
	return both_us > job->outcome.queue_us ? both_us - job->outcome.queue_us : 0;
}

void session_job_started(struct session_job *job)
{
	uint64_t before_us = elapsed_us(job);
	uint64_t timeout_us = job->decision.timeout_us;

	timeout_us = before_us < timeout_us ? timeout_us - before_us : 1;
	job->started_us = clock_us();
	if (job->runner && job->runner->id == job->runner_id) {
		job->was_unused = job->runner->unused;
		job->runner->unused = false;
	}
	run_record_started(job->record);
	job->outcome.start_us = start_us(job);
	if (before_us < job->started_us)
		job->started_us -= before_us;
	/* Cancelled or too late before it began: the clock of its end is running already. */
	if (job->phase != JOB_STARTING)
		return;
	job->phase = JOB_RUNNING;
	if (job->session->state == SESSION_PAUSED)
		job->session->job_left_us = timeout_us;
	else
		session_job_set_timer(job->session, timeout_us);
}

/* An agent that takes no order is as good as gone. */
static void send_signal(struct session_job *job, uint32_t id, int signo)
{
	struct session *session = job->session;
	struct error err = {0};

	if (box_signal(session->box, id, signo, &err) < 0)
		session_box_lost(session, &err);
}

static void kill_it(struct session_job *job)
{
	struct session *session = job->session;

	job->phase = JOB_KILLING;
	session_job_set_timer(session, SESSION_KILL_US);
	send_signal(job, job->runner ? job->runner_id : job->id, SIGKILL);
}

/* Nothing inside a frozen box can answer: it runs on to its end, place or no place. */
static void wake(struct session_job *job)
{
	struct session *session = job->session;

	if (session->state != SESSION_PAUSED)
		return;
	scheduler_out(session->service->scheduler, &job->entry, clock_us());
	session_resumed(session);
}

void session_job_stop(struct session_job *job)
{
	struct session *session = job->session;

	if (job->phase >= JOB_STOPPING)
		return;
	wake(job);
	if (session_is_over(session))
		return;
	if (!job->runner) {
		kill_it(job);
		return;
	}
	job->phase = JOB_STOPPING;
	session_job_set_timer(session, SESSION_GRACE_US);
	send_signal(job, job->id, SIGINT);
}

static void on_start_timeout(struct session_job *job)
{
	struct error err = {0};

	(void)error_set(&err, ERR_BOX_FAILED, 0, "the program was not started in time");
	session_box_lost(job->session, &err);
}

static void on_gathered(void *ctx)
{
	session_job_conclude(ctx);
}

static void note_given(struct session_job *job)
{
	const struct run_request *request = job->request;

	job->given.budget = GIVEN_HASHED;
	for (size_t i = 0; i < request->files_count; i++)
		given_add(&job->given, request->files[i].name, request->files[i].data,
		          request->files[i].len);
}

void session_job_gather(struct session_job *job, uint64_t since_ns)
{
	struct session *session = job->session;

	job->gather.into = &job->outcome.artifacts;
	job->gather.seen = &session->seen;
	job->gather.given = &job->given;
	job->gather.on_over = on_gathered;
	job->gather.ctx = job;
	if (since_ns)
		note_given(job);
	if (!since_ns || !gather_start(&job->gather, session->box, since_ns)) {
		session_job_conclude(job);
		return;
	}
	job->phase = JOB_GATHERING;
	session_job_set_timer(session, ARTIFACTS_TIME_US);
}

void session_job_timer(void *ctx)
{
	struct session *session = ctx;
	struct session_job *job = session->current;
	struct error err = {0};

	if (!job && session->strangers > 0 && session->box)
		session_kill_stranger(session);
	if (!job)
		return;
	if (job->phase == JOB_STARTING) {
		on_start_timeout(job);
	} else if (job->phase == JOB_RUNNING) {
		job->evidence.timed_out = true;
		session_job_stop(job);
	} else if (job->phase == JOB_STOPPING) {
		session_log(session, LOG_LEVEL_DEBUG, "does not let itself be interrupted");
		kill_it(job);
	} else if (job->phase == JOB_GATHERING) {
		session_job_conclude(job);
	} else if (job->phase == JOB_KILLING) {
		(void)error_set(&err, ERR_AGENT_LOST, 0, "what was killed did not end in time");
		session_box_lost(session, &err);
	}
}

int session_job_stdin(struct session_job *job, const void *data, size_t len, bool end,
                      struct error *err)
{
	struct box *box = job->session->box;

	job->stdin_late = true;
	if (len > 0 && box_stdin(box, job->id, data, len, err) < 0)
		return -1;
	return end ? box_stdin_end(box, job->id, err) : 0;
}
