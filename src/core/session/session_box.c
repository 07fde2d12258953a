/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_internal.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/language/env.h"
#include "core/language/runners.h"
#include "core/observe/metrics.h"
#include "core/run/run_record_internal.h"
#include "core/session/session_beside.h"
#include "core/session/session_build.h"
#include "core/session/session_pause.h"
#include "core/session/session_reattach.h"
#include "core/template/template.h"

/*
 * Theory of operation. The session's box as the place of its runs. In a persistent session a run
 * goes to the resident runner of its language, which keeps variables; others, and all of a session
 * of mode workspace, become processes of their own. A resident runner is
 * interrupted first: if the run then ends, its variables are kept. If not, it is killed with all it
 * started, and the next run gets a new one. An agent that does not report a kill in time was
 * stopped or taken over by its program: the box is destroyed.
 *
 * A kept box remembers a run by its label, and forgets it when the daemon acknowledges its end,
 * once the record is on disk. If the daemon is killed before that, the agent repeats it to the next
 * one.
 *
 * Events of the box name the current run, a runner, or one that is over (lost with its run, or
 * given up). The last kind is ignored; the link has checked that the agent may send it.
 */

#define SOURCE_LEN    80
#define COMPILE_LABEL "compile"
#define NUMBER_LEN    17 /* 16 digits and NUL */

static const char *format_number(uint64_t value, char ret_text[NUMBER_LEN])
{
	if (value == COUNTER_UNKNOWN)
		return "-";
	(void)snprintf(ret_text, NUMBER_LEN, "%" PRIx64, value);
	return ret_text;
}

void session_label_make(const struct session_label *label, char ret_text[BOX_LABEL_MAX + 1])
{
	const struct box_counters *b = &label->before;
	char queue[NUMBER_LEN], cpu[NUMBER_LEN], oom[NUMBER_LEN], pids[NUMBER_LEN];

	if (str_format(ret_text, BOX_LABEL_MAX + 1, "%s %s %s %s %s", label->id,
	               format_number(label->queue_us, queue), format_number(b->cpu_us, cpu),
	               format_number(b->oom_kills, oom), format_number(b->pids_denied, pids)) < 0)
		(void)!str_copy(ret_text, BOX_LABEL_MAX + 1, label->id); /* ids are shorter */
}

static uint64_t take_number(const char **pos)
{
	static const char digits[] = "0123456789abcdef";
	const char *start = *pos + strspn(*pos, " ");
	size_t len = strcspn(start, " ");
	uint64_t value = 0;

	*pos = start + len;
	if (len == 0 || len >= NUMBER_LEN)
		return COUNTER_UNKNOWN;
	for (size_t i = 0; i < len; i++) {
		const char *digit = strchr(digits, start[i]);

		if (!digit)
			return COUNTER_UNKNOWN;
		value = value << 4 | (uint64_t)(digit - digits);
	}
	return value;
}

void session_label_read(const char *text, struct session_label *ret_label)
{
	size_t len = strcspn(text, " ");
	const char *pos = text + len;

	*ret_label = (struct session_label){0};
	memset(&ret_label->before, 0xff, sizeof(ret_label->before));
	if (len >= sizeof(ret_label->id))
		len = sizeof(ret_label->id) - 1;
	memcpy(ret_label->id, text, len);
	ret_label->queue_us = take_number(&pos);
	ret_label->before.cpu_us = take_number(&pos);
	ret_label->before.oom_kills = take_number(&pos);
	ret_label->before.pids_denied = take_number(&pos);
}

/* A runner has the session's environment; a process adds the request's. */
static char **make_env(const struct run *run, char *const *own)
{
	const struct session *session = run->owner;
	cleanup_str_list char **shared = template_env(session->template, session->env);
	unsigned extras = (session->spec.network == BOX_NETWORK_ALLOWLIST ? ENV_PROXY : 0) |
	                  (session->spec.tools ? ENV_TOOLS : 0);
	char *const *secrets = session->spec.rules ? session->spec.rules->env : NULL;
	cleanup_str_list char **runner =
		template_runner_env(session->template, run->decision.runner);
	cleanup_str_list char **env = env_make(runner, shared, extras, secrets);

	return env_make(env, own, extras, NULL);
}

/* The kind of terminal that clients have. The caller's own variable overrides it. */
static char **make_process_env(const struct run *run)
{
	char term[] = "TERM=xterm-256color";
	char *const added[] = {term, NULL};
	cleanup_str_list char **env = make_env(run, run->terminal ? added : NULL);

	return env_make(env, run->request->env, 0, NULL);
}

/* For a runner: the run's variables, "", its arguments. Borrowed strings. */
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
		.label = session->spec.keep ? runner->language->name
	                                    : NULL, /* only for a kept box */
	};

	error_clear(&runner->failure);
	if (box_exec(session->box, &plan, err) < 0)
		return error_wrap(err, "start the runner");
	runner->id = ++session->last_id;
	return 0;
}

/* Starts the runner if there is none. */
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

static const char *name_artifact(const struct run *run, char ret_name[SOURCE_LEN])
{
	/* Of the compiler's execution: the program is the next one. */
	(void)snprintf(ret_name, SOURCE_LEN, ".millibox/run%u", run->build ? run->build->id : 0);
	return ret_name;
}

/* In the box of the session, whose files it may need. Its label names no run: a daemon that finds
 * it in the box forgets it, and the run has failed. */
static int hand_to_compiler(struct run *run, const struct run_plan *common, struct error *err)
{
	struct session *session = run->owner;
	const struct runner *language = run->decision.runner;
	bool proxied = session->spec.network == BOX_NETWORK_ALLOWLIST;
	char artifact[SOURCE_LEN];
	cleanup_str_list char **argv = NULL, **env = NULL;
	cleanup_str_list char **own = template_runner_env(session->template, language);
	struct exec_plan plan = {
		.id = session->last_id + 1,
		.cwd = "",
		.files = common->files,
		.files_count = common->files_count,
		.stdout_max = common->stdout_max,
		.stderr_max = common->stderr_max,
		.beside = run->beside,
		.label = common->label ? COMPILE_LABEL : NULL,
	};

	run->build->id = plan.id;
	argv = policy_argv(&(struct policy_command){
		.runner = language,
		.template = session->template,
		.command = language->compile_command,
		.source = common->source,
		.artifact = name_artifact(run, artifact),
		.request = run->request,
		.options = run->request->options,
		.compile = POLICY_COMPILE_KEEP,
	});
	env = env_make(own, language->compile_env, proxied ? ENV_PROXY : 0, NULL);
	plan.argv = (const char *const *)argv;
	plan.env = (const char *const *)env;
	build_begin(run);
	if (box_exec(session->box, &plan, err) < 0)
		return -1;
	run->id = ++session->last_id;
	return 0;
}

static int hand_to_process(struct run *run, const struct run_plan *common, struct error *err)
{
	struct session *session = run->owner;
	const struct runner *language = run->decision.runner;
	char artifact[SOURCE_LEN];
	const struct policy_command command = {
		.runner = language,
		.template = session->template,
		.command = template_command(session->template, language),
		.source = common->source,
		.artifact = name_artifact(run, artifact),
		.args = run->request->args,
		.options = run->request->options,
	};
	cleanup_str_list char **argv = policy_argv(&command);
	cleanup_str_list char **env = make_process_env(run);
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
		.beside = run->beside,
		.source = run->build ? NULL : common->source, /* the compiler's had another name */
		.rows = (uint16_t)run->request->tty_rows,
		.cols = (uint16_t)run->request->tty_cols,
		.label = common->label,
	};

	if (box_exec(session->box, &plan, err) < 0)
		return -1;
	run->id = ++session->last_id;
	return 0;
}

/* Options change the command of a process; the resident runner has its own. */
static bool is_for_runner(const struct run *run)
{
	const struct session *session = run->owner;
	const struct run_request *request = run->request;
	bool has_options = request->options && *request->options;

	return run->decision.session_command && !request->fresh && !run->beside && !has_options &&
	       session->mode == SESSION_PERSISTENT;
}

/* The compiler got them, and the program needs no code. */
static bool has_files(const struct run *run)
{
	return run->build && !build_is_due(run) && !run->decision.runner->compile_if;
}

static int place_hand_over(struct run *run, struct error *err)
{
	struct session *session = run->owner;
	const struct run_request *request = run->request;
	const char *extension = strrchr(run->decision.runner->source, '.');
	struct session_label memory = {.queue_us = run->outcome.queue_us, .before = run->before};
	char name[SOURCE_LEN] = "", label[BOX_LABEL_MAX + 1] = "";
	struct exec_source source = run_code(run, name);
	/* A compiler reads code only. */
	attr_unused cleanup_free char *packed =
		build_is_due(run) ? NULL : exec_source_ask(&source, request);
	cleanup_free struct exec_file *files = run_request_files(request, &source);
	struct run_plan plan = {
		.source = name,
		.files = files,
		.files_count = has_files(run) ? 0 : request->files_count + 1,
		/* One byte more than is kept, to detect truncation. */
		.stdout_max = run->decision.output_bytes + 1,
		.stderr_max = run->decision.output_bytes + 1,
		.report_max = run->decision.report_bytes,
		.stdin_open = request->stdin_len > 0 || request->stdin_open,
		.label = session->spec.keep ? label : NULL, /* only for a kept box */
	};
	struct error lost = {0};
	int r;

	/* run7.py: unique in the life of the box, across retries and daemons. Manifests keep
	 * extensions short: it fits. */
	(void)snprintf(name, sizeof(name), "run%u%s", session->last_id + 1,
	               extension ? extension : "");
	(void)!str_copy(memory.id, sizeof(memory.id), run->record->id); /* ids are shorter */
	session_label_make(&memory, label);
	if (build_is_due(run))
		return hand_to_compiler(run, &plan, err);
	if (is_for_runner(run))
		r = hand_to_runner(run, &plan, err);
	else
		r = hand_to_process(run, &plan, err);
	if (r < 0)
		return -1;
	/* It is in the box and must not run without its input. */
	if (request->stdin_len > 0 &&
	    (box_stdin(run->box, run->id, request->stdin_data, request->stdin_len, &lost) < 0 ||
	     (!request->stdin_open && box_stdin_end(run->box, run->id, &lost) < 0)))
		session_box_lost(session, &lost);
	return 0;
}

/* A frozen box cannot answer, but the box of another run that needs a place must not go on without
 * one: then it stops when the session is resumed. */
static void stop_beside_in_pause(struct run *run)
{
	struct session *session = run->owner;
	struct error err = {0};

	run->stop_due = true;
	if (session_resume(session, &err) < 0)
		session_fail(session, &err);
}

/* A frozen box cannot answer: thaw it, even without a place. */
static void place_stop(struct run *run, enum run_stop why attr_unused)
{
	struct session *session = run->owner;

	if (session->state == SESSION_PAUSED && run->beside) {
		stop_beside_in_pause(run);
		return;
	}
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

static void on_settled(void *ctx)
{
	struct session_ack *ack = ctx;
	struct session *session = ack->session;

	if (session) {
		list_remove(&ack->node);
		for (size_t i = 0; i < ARRAY_SIZE(ack->ids); i++)
			if (session->box && ack->ids[i])
				box_ack(session->box, ack->ids[i]);
		session->unacked--;
	}
	free(ack);
	/* The next run may have waited for this; never from inside the end of a run. */
	if (session && !session->current)
		session_pump(session);
}

void session_drop_acks(struct session *session)
{
	struct session_ack *ack;

	LIST_FOREACH (ack, &session->acks, struct session_ack, node) {
		list_remove(&ack->node);
		ack->session = NULL;
	}
	session->unacked = 0;
}

/* The box forgets the run once its end is on disk. What it remembers goes with it. */
static void place_settle(struct run *run)
{
	struct session *session = run->owner;
	struct session_ack *ack;
	const struct artifacts *made = &run->outcome.artifacts;

	if (session->spec.keep && session->box && run->id != 0 && !session_is_over(session)) {
		ack = NEW(struct session_ack);
		ack->session = session;
		ack->ids[0] = run->id;
		ack->ids[1] = run->dead_runner;
		list_append(&session->acks, &ack->node);
		session->unacked++;
		run->record->settled = on_settled;
		run->record->settled_ctx = ack;
	}
	if (error_is_set(&run->failure))
		return;
	for (size_t i = 0; i < made->count; i++)
		session_changed(session, SESSION_CHANGE_FILE, made->list[i].path);
	session_changed(session, SESSION_CHANGE_LOG, NULL);
}

static void place_leave(struct run *run)
{
	run->box = NULL; /* owned by the session */
	scheduler_out(&run->service->scheduler, &run->entry, clock_us());
}

const struct run_place session_place = {
	.hand_over = place_hand_over,
	.stop = place_stop,
	.give_up = place_give_up,
	.settle = place_settle,
	.leave = place_leave,
	.others = session_beside_others,
};

struct session_runner *session_runner_of(struct session *session, const struct runner *language)
{
	struct session_runner *runner;

	LIST_FOREACH (runner, &session->runners, struct session_runner, node)
		if (runner->language == language)
			return runner;
	return NULL;
}

static struct session_runner *runner_with(struct session *session, uint32_t id)
{
	struct session_runner *runner;

	LIST_FOREACH (runner, &session->runners, struct session_runner, node)
		if (runner->id == id)
			return runner;
	return NULL;
}

/* NULL: @id is not that of the current run, nor of one beside it. */
static struct run *run_with(const struct session *session, uint32_t id)
{
	struct run *run = session->current;

	return run && run->place == &session_place && run->state >= RUN_STARTING && run->id == id
	               ? run
	               : session_beside_with(session, id);
}

static void on_ready(void *ctx)
{
	struct session *session = ctx;

	session_built(session);
	if (session->state != SESSION_CREATING)
		return;
	session_touch(session);
	metrics_observe(session->service->config.metrics, METRIC_COLD_START,
	                (double)(session->active_us - session->created_us) / 1e6);
	session_set_state(session, SESSION_READY);
	session_pump(session);
}

static void on_started(void *ctx, uint32_t id)
{
	struct session *session = ctx;
	struct run *run = run_with(session, id);

	if (session->unproven)
		session_prove(session);
	if (!run)
		return;
	if (run->runner && run->runner->id == run->runner_id) {
		run->runner_unused = run->runner->unused;
		run->runner->unused = false;
	}
	/* A used runner could have seen this run and skipped it. */
	run->repeatable &= run->runner_unused;
	run_started(run);
}

static void on_output(void *ctx, uint32_t id, enum output_stream stream, const char *data,
                      size_t len)
{
	struct run *run = run_with(ctx, id);

	if (run)
		run_add_output(run, stream, data, len);
}

static void on_report(void *ctx, uint32_t id, const char *data, size_t len)
{
	struct run *run = run_with(ctx, id);

	if (run)
		run_add_report(run, data, len);
}

/* Of the run or, during it, of its runner. */
static void on_denial(void *ctx, uint32_t id, const char *what, uint64_t count)
{
	const struct session *session = ctx;
	struct run *run = run_with(session, id), *current = session->current;

	if (!run && current && current->runner && current->runner_id == id)
		run = current;
	if (run)
		run_add_denial(run, what, count);
}

/* An unused one has no variables to lose. */
static void lose_runner(struct session_runner *runner)
{
	runner->id = 0;
	runner->reset_due = !runner->unused;
	runner->unused = false;
}

static void begin_again(struct run *run)
{
	struct session *session = run->owner;

	session_log(session, LOG_LEVEL_DEBUG, "its runner ended before it took the run");
	run->retried = true;
	box_ack(session->box, run->id);
	run_hand_over(run);
}

/* An unused runner was killed before it took the run. */
static bool begin_untaken_again(struct run *run)
{
	const struct session *session = run->owner;

	if (!run->repeatable || !run->runner_unused || run->state != RUN_RUNNING ||
	    session->state != SESSION_RUNNING)
		return false;
	if (run->runner->id == run->runner_id)
		run->runner->id = 0;
	begin_again(run);
	return true;
}

static void on_runner_ended(struct session *session, uint32_t id)
{
	struct session_runner *runner = runner_with(session, id);

	if (!runner) {
		/* The run lost with it has reported that. */
		box_ack(session->box, id);
		return;
	}
	session_log(session, LOG_LEVEL_DEBUG, "its runner ended by itself");
	runner->dead_id = runner->id;
	lose_runner(runner);
}

static void on_done(void *ctx, uint32_t id, const struct exec_facts *facts)
{
	struct session *session = ctx;
	struct run *run = run_with(session, id);

	if (!run) {
		on_runner_ended(session, id);
		return;
	}
	if (build_is_due(run)) {
		if (run_built(run, facts)) {
			box_ack(session->box, id);
			run_hand_over(run);
		}
		return;
	}
	if (facts->untaken && begin_untaken_again(run))
		return;
	/* The run ended after its runner was killed: the runner is lost all the same. */
	if (run->runner && (facts->runner_lost || run->state == RUN_KILLING)) {
		run->reset = true;
		if (run->runner->id == run->runner_id)
			run->runner->id = 0;
	}
	run_done(run, facts, &session->seen);
}

/* The runner died before it took the run; its end was reported, or will be. */
static bool begin_failed_again(struct run *run, const struct error *err)
{
	struct session_runner *runner = run->runner;
	bool lost = runner &&
	            (runner->id != run->runner_id || err->sys == EPIPE || err->sys == ECONNRESET);

	if (!lost || !run->repeatable || error_is_set(&runner->failure) ||
	    run->state != RUN_STARTING)
		return false;
	if (runner->id == run->runner_id)
		lose_runner(runner);
	begin_again(run);
	return true;
}

static void on_run_failed(struct run *run, const struct error *err)
{
	const struct session_runner *runner = run->runner;

	if (begin_failed_again(run, err))
		return;
	if (run->evidence.cancelled)
		run_conclude(run);
	else
		run_fail(run, runner && error_is_set(&runner->failure) ? &runner->failure : err);
}

static void on_exec_failed(void *ctx, uint32_t id, const struct error *err)
{
	struct session *session = ctx;
	struct run *run = run_with(session, id);
	struct session_runner *runner;

	if (run) {
		on_run_failed(run, err);
		return;
	}
	box_ack(session->box, id);
	runner = runner_with(session, id);
	if (!runner)
		return;
	runner->id = 0;
	runner->failure = *err; /* for the run handed over behind it, which fails too */
}

/* An ephemeral session's run takes the box with it. */
void session_box_lost(struct session *session, const struct error *err)
{
	struct run *run = session->current;
	bool pumping = session->pumping;

	if (session_mode_has_box(session->mode)) {
		session_fail(session, err);
		return;
	}
	session->pumping = true; /* keep the next run out of this box */
	if (run && run->place == &session_place) {
		run->evidence.lost = run->state != RUN_GATHERING;
		if (run->started_us)
			run_conclude(run);
		else
			run_fail(run, err);
	}
	session_box_spent(session);
	session->pumping = pumping;
	session_pump(session);
}

static void on_lost(void *ctx, const struct error *err)
{
	struct session *session = ctx;

	session_log(session, LOG_LEVEL_DEBUG, "lost its box: %s", err->msg);
	if (session_replace_box(session) || session_remake_box(session))
		return;
	session_box_lost(session, err);
}

static void on_box_gone(void *ctx)
{
	struct session *session = ctx;
	struct session_service *s = session->service;
	bool goes_on = s && session->box_leaving && !session_is_over(session);

	session->box = NULL;
	if (s)
		session_built(session);
	/* If the daemon is leaving, the next one does it. */
	if (goes_on && session_mode_has_box(session->mode) && !s->leaving) {
		s->boxes--;
		session_remade(session);
		return;
	}
	session_prove(session);
	session_drop_acks(session);
	if (s) {
		s->boxes--;
		session_owner_drop_box(session);
		session_service_check_drained(s);
	}
	session_leave_root(session);
	if (goes_on && session->mode == SESSION_EPHEMERAL) {
		session_files_go_on(session);
		session_pump(session);
	}
	session_reap(session);
}

struct box_events session_box_events(struct session *session)
{
	return (struct box_events){
		.ctx = session,
		.on_ready = on_ready,
		.on_started = on_started,
		.on_output = on_output,
		.on_report = on_report,
		.on_denial = on_denial,
		.on_done = on_done,
		.on_exec_failed = on_exec_failed,
		.on_lost = on_lost,
		.on_gone = on_box_gone,
		.on_resume = session_on_reattach,
		.on_resumed = session_on_reattached,
		.on_forgotten = session_on_forgotten,
		.on_frozen = session_on_frozen,
	};
}
