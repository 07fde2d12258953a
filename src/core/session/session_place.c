/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/env.h"
#include "core/language/runners.h"
#include "core/run/run_record_internal.h"
#include "core/session/session_internal.h"
#include "core/session/session_reattach.h"
#include "core/template/template.h"

/*
 * Theory of operation. The box of a session as the place of its runs. A run goes to the resident
 * runner of its language, which keeps variables, or becomes a process of its own. A resident runner
 * is interrupted first: if the run then ends, its variables are kept. If not, it is killed with all
 * it started, and the next run gets a new one in the same box. An agent that does not report a kill
 * in time was stopped by its program, or taken over: then the box is destroyed.
 */

#define SOURCE_LEN 80

/* The runner's environment is the session's; a process of its own has the request's too. */
static char **make_env(const struct run *run, char *const *own)
{
	const struct session *session = run->owner;
	cleanup_str_list char **shared = template_env(session->template, session->env);
	cleanup_str_list char **env = env_make(run->decision.runner->env, shared);

	return env_make(env, own);
}

/* For a runner: the variables of this run, "", its arguments. Borrowed strings. */
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

static int start_runner(struct run *run, struct session_runner *runner, struct error *err)
{
	struct session *session = run->owner;
	const struct policy_command command = {
		.runner = runner->language,
		.template = session->template,
		.command = run->decision.session_command,
		.source = runner->language->source,
		.args = runner->language->preload && session->template
	                        ? session->template->spec.preload
	                        : NULL,
	};
	cleanup_str_list char **argv = policy_argv(&command);
	cleanup_str_list char **env = make_env(run, NULL);
	const struct exec_plan plan = {
		.id = session->last_id + 1,
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.cwd = "",
		.keep = true,
		.label = runner->language->name,
	};

	error_clear(&runner->failure);
	if (box_exec(session->box, &plan, err) < 0)
		return error_wrap(err, "start the runner");
	runner->id = ++session->last_id;
	return 0;
}

/* To the runner of the run's language, which is started if there is none. */
static int hand_to_runner(struct run *run, struct run_plan *plan, struct error *err)
{
	struct session *session = run->owner;
	struct session_runner *runner = session_runner_of(session, run->decision.runner);
	cleanup_free const char **words = make_words(run->request);

	if (!runner) {
		runner = NEW(struct session_runner);
		runner->language = run->decision.runner;
		list_append(&session->runners, &runner->node);
	}
	if (runner->id == 0 && start_runner(run, runner, err) < 0)
		return -1;
	plan->id = session->last_id + 1;
	plan->runner = runner->id;
	plan->args = words;
	if (box_run(session->box, plan, err) < 0)
		return -1;
	run->id = ++session->last_id;
	run->runner = runner;
	run->runner_id = runner->id;
	run->repeatable = !run->retried;
	run->reset |= runner->reset_due;
	run->dead_runner = runner->dead_id;
	runner->reset_due = false;
	runner->dead_id = 0;
	return 0;
}

static int hand_to_process(struct run *run, const struct run_plan *common, struct error *err)
{
	struct session *session = run->owner;
	const struct runner *language = run->decision.runner;
	const struct policy_command command = {
		.runner = language,
		.template = session->template,
		.command = template_command(session->template, language),
		.source = common->source,
		.args = run->request->args,
	};
	cleanup_str_list char **argv = policy_argv(&command);
	cleanup_str_list char **env = make_env(run, run->request->env);
	const struct exec_plan plan = {
		.id = session->last_id + 1,
		.argv = (const char *const *)argv,
		.env = (const char *const *)env,
		.cwd = run->request->cwd ? run->request->cwd : "",
		.files = common->files,
		.files_count = common->files_count,
		.stdout_max = common->stdout_max,
		.stderr_max = common->stderr_max,
		.report_max = common->report_max,
		.stdin_open = common->stdin_open,
		.label = common->label,
	};

	if (box_exec(session->box, &plan, err) < 0)
		return -1;
	run->id = ++session->last_id;
	return 0;
}

static int hand_program_over(struct run *run, struct error *err)
{
	const struct session *session = run->owner;
	const struct run_request *request = run->request;
	const char *extension = strrchr(run->decision.runner->source, '.');
	struct session_label memory = {.queue_us = run->outcome.queue_us, .before = run->before};
	char name[SOURCE_LEN] = "", label[BOX_LABEL_MAX + 1] = "";
	struct exec_source source = run_code(run, name);
	attr_unused cleanup_free char *packed = exec_source_ask(&source, request->ask);
	cleanup_free struct exec_file *files = run_request_files(request, &source);
	struct run_plan plan = {
		.source = name,
		.files = files,
		.files_count = request->files_count + 1,
		/* One byte more than is kept: whether output was cut is then seen, not guessed. */
		.stdout_max = run->decision.output_bytes + 1,
		.stderr_max = run->decision.output_bytes + 1,
		.report_max = run->decision.report_bytes,
		.stdin_open = request->stdin_len > 0 || request->stdin_open,
		.label = session->spec.keep ? label : NULL, /* only a kept box takes one */
	};

	/* run7.py: unique in the life of the box, retries and other daemons included, with the
	 * extension its language expects. File names of manifests are short: it fits. */
	(void)snprintf(name, sizeof(name), "run%u%s", session->last_id + 1,
	               extension ? extension : "");
	(void)!str_copy(memory.id, sizeof(memory.id), run->record->id); /* ids are shorter */
	session_label_make(&memory, label);
	if (run->decision.session_command && !request->fresh && session->mode == SESSION_PERSISTENT)
		return hand_to_runner(run, &plan, err);
	return hand_to_process(run, &plan, err);
}

static int place_hand_over(struct run *run, struct error *err)
{
	const struct run_request *request = run->request;
	struct error lost = {0};

	if (hand_program_over(run, err) < 0)
		return -1;
	/* It is in the box, and must not run without its input. */
	if (request->stdin_len > 0 &&
	    (box_stdin(run->box, run->id, request->stdin_data, request->stdin_len, &lost) < 0 ||
	     (!request->stdin_open && box_stdin_end(run->box, run->id, &lost) < 0)))
		session_box_lost(run->owner, &lost);
	return 0;
}

/* Nothing inside a frozen box can answer: it is thawed, place or no place. */
static void place_stop(struct run *run, enum run_stop why attr_unused)
{
	struct session *session = run->owner;

	if (session->state == SESSION_PAUSED) {
		scheduler_out(session->service->scheduler, &run->entry, clock_us());
		session_resumed(session);
	}
	if (!session_is_over(session))
		run_interrupt(run);
}

static void place_give_up(struct run *run, const struct error *err)
{
	session_box_lost(run->owner, err);
}

/* Acknowledge the end to the box once it is recorded; call the session's watcher. */
static void place_settle(struct run *run)
{
	const struct session *session = run->owner;
	const struct artifacts *made = &run->outcome.artifacts;

	session_ack_run(run);
	if (error_is_set(&run->failure))
		return;
	for (size_t i = 0; i < made->count; i++)
		session_changed(session, SESSION_CHANGE_FILE, made->list[i].path);
	session_changed(session, SESSION_CHANGE_LOG, NULL);
}

static void place_leave(struct run *run)
{
	run->box = NULL; /* the session's */
	scheduler_out(&run->service->scheduler, &run->entry, clock_us());
}

const struct run_place session_place = {
	.hand_over = place_hand_over,
	.stop = place_stop,
	.give_up = place_give_up,
	.settle = place_settle,
	.leave = place_leave,
};
