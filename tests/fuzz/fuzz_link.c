/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes of an agent into the host end of the wire, in two pieces: the first byte of the input
 * is where to split. Two programs, a runner and its run wait for their agent. Whatever comes, no
 * callback exceeds the grant, none comes for an execution that has ended, no run is without its
 * runner, and after the loss there is none at all.
 */
#include "base/attr.h"
#include "base/log.h"
#include "driver/link.h"
#include "fuzz.h"
#include "io/loop.h"

#define PROGRAMS   2
#define RUNNER     3 /* has no output of its own */
#define RUN        4
#define EXECS      4
#define STDOUT_MAX 64
#define STDERR_MAX 16
#define REPORT_MAX 32

struct seen {
	bool lost, greeted;
	struct {
		bool started, ended;
		size_t output[OUTPUT_COUNT], report;
	} runs[EXECS + 1];
};

static void require_running(const struct seen *s, uint32_t id)
{
	require(!s->lost && s->greeted && id >= 1 && id <= EXECS);
	require(s->runs[id].started && !s->runs[id].ended);
}

static void on_hello(void *ctx, const struct msg_hello *hello)
{
	struct seen *s = ctx;

	require(!s->lost && !s->greeted);
	require(hello->version == WIRE_VERSION && !(hello->layers & ~LINK_AGENT_LAYERS));
	s->greeted = true;
}

static void on_lost(void *ctx, const struct error *err)
{
	struct seen *s = ctx;

	require(!s->lost && error_is_set(err));
	s->lost = true;
}

static void on_started(void *ctx, uint32_t id)
{
	struct seen *s = ctx;

	require(!s->lost && s->greeted && id >= 1 && id <= EXECS);
	require(!s->runs[id].started && !s->runs[id].ended);
	require(id != RUN || !s->runs[RUNNER].ended);
	s->runs[id].started = true;
}

static void on_output(void *ctx, uint32_t id, enum output_stream stream, const char *data,
                      size_t len)
{
	static const size_t granted[] = {
		[OUTPUT_STDOUT] = STDOUT_MAX, [OUTPUT_STDERR] = STDERR_MAX};
	struct seen *s = ctx;

	require_running(s, id);
	require(id != RUNNER);
	require(stream < OUTPUT_COUNT && data && len > 0);
	s->runs[id].output[stream] += len;
	require(s->runs[id].output[stream] <= granted[stream]);
}

static void on_report(void *ctx, uint32_t id, const char *data, size_t len)
{
	struct seen *s = ctx;

	require_running(s, id);
	require(id != RUNNER);
	s->runs[id].report += len;
	require(data && s->runs[id].report <= REPORT_MAX);
}

static void on_denial(void *ctx, uint32_t id, const char *what, uint64_t count)
{
	(void)count;
	require_running(ctx, id);
	require(what[0] != '\0');
}

static void on_done(void *ctx, uint32_t id, const struct exec_facts *facts)
{
	struct seen *s = ctx;

	require_running(s, id);
	require(facts->stdout_bytes >= s->runs[id].output[OUTPUT_STDOUT]);
	require(facts->status >= 0 && facts->status <= 255);
	require(!facts->runner_lost || id == RUN);
	require(!facts->untaken || facts->runner_lost);
	require(id != RUNNER || !s->runs[RUN].started || s->runs[RUN].ended);
	s->runs[id].ended = true;
}

/* The agent decided which ids are runs and runners. */
static void on_any_done(void *ctx, uint32_t id, const struct exec_facts *facts)
{
	struct seen *s = ctx;

	require_running(s, id);
	require(facts->stdout_bytes >= s->runs[id].output[OUTPUT_STDOUT]);
	s->runs[id].ended = true;
}

static void on_exec_failed(void *ctx, uint32_t id, const struct error *err)
{
	struct seen *s = ctx;

	require(!s->lost && s->greeted && id >= 1 && id <= EXECS && error_is_set(err));
	require(!s->runs[id].started && !s->runs[id].ended);
	s->runs[id].ended = true;
}

static void hand_over(struct link *l, uint32_t id)
{
	static const char *const argv[] = {"/bin/true", NULL};
	static const char *const env[] = {NULL};
	struct exec_plan plan = {.id = id,
	                         .argv = argv,
	                         .env = env,
	                         .cwd = "",
	                         .stdout_max = STDOUT_MAX,
	                         .stderr_max = STDERR_MAX,
	                         .report_max = REPORT_MAX,
	                         .stdin_open = id == 1,
	                         .keep = id == RUNNER};
	struct error err = {0};

	require(link_exec(l, &plan, &err) == 0);
}

static void hand_over_run(struct link *l)
{
	static const char *const args[] = {NULL};
	static const struct exec_file code = {
		.path = "run", .data = "", .mode = 0444, .source = true};
	const struct run_plan plan = {.id = RUN,
	                              .runner = RUNNER,
	                              .source = "run",
	                              .args = args,
	                              .files = &code,
	                              .files_count = 1,
	                              .stdout_max = STDOUT_MAX,
	                              .stderr_max = STDERR_MAX,
	                              .report_max = REPORT_MAX};
	struct error err = {0};

	require(link_run(l, &plan, &err) == 0);
}

/* As the stream does: unused bytes are passed again with more. */
static void feed(struct link *l, const uint8_t *data, size_t size)
{
	size_t cut = size ? data[0] % size + 1 : 0;
	const char *bytes = (const char *)data + (size ? 1 : 0);
	size_t len = size ? size - 1 : 0;
	size_t first = cut < len ? cut : len;
	size_t used = link_input(l, bytes, first);

	require(used <= first);
	require(link_input(l, bytes + used, len - used) <= len - used);
}

/* A box of an earlier daemon: what it describes is accepted only within the grant. */
static int on_resume(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant)
{
	struct seen *s = ctx;

	require(!s->lost && s->greeted && what->id != 0 && what->label[0]);
	require(strlen(what->label) <= BOX_LABEL_MAX && !(what->keep && what->runner));
	if (what->id > EXECS || what->label[0] == '!')
		return -1;
	*ret_grant = (struct box_grant){.stdout_max = STDOUT_MAX,
	                                .stderr_max = STDERR_MAX,
	                                .report_max = REPORT_MAX,
	                                .forget = what->label[0] == '?'};
	/* No callback may come for a forgotten one. */
	s->runs[what->id].ended = ret_grant->forget;
	return 0;
}

static void on_resumed(void *ctx, uint32_t last_id)
{
	const struct seen *s = ctx;

	(void)last_id;
	require(!s->lost && s->greeted);
}

static void on_forgotten(void *ctx, uint32_t id)
{
	const struct seen *s = ctx;

	require(!s->lost && s->greeted && s->runs[id].ended);
}

static void resume(const uint8_t *data, size_t size, const struct box_events *events)
{
	struct seen seen = {0};
	const struct link_events own = {.ctx = &seen, .on_hello = on_hello, .on_lost = on_lost};
	struct box_events box = *events;
	struct loop *loop = loop_new();
	struct link *l;

	box.ctx = &seen;
	box.on_resume = on_resume;
	box.on_resumed = on_resumed;
	box.on_forgotten = on_forgotten;
	box.on_done = on_any_done;
	l = link_new(loop, "box", &own, &box);
	link_adopt(l, -1);
	feed(l, data, size);
	link_free(l);
	loop_free(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = {0};
	const struct link_events events = {.ctx = &seen, .on_hello = on_hello, .on_lost = on_lost};
	const struct box_events box = {.ctx = &seen,
	                               .on_started = on_started,
	                               .on_output = on_output,
	                               .on_report = on_report,
	                               .on_denial = on_denial,
	                               .on_done = on_done,
	                               .on_exec_failed = on_exec_failed};
	const struct msg_setup setup = {.version = WIRE_VERSION};
	struct loop *loop = loop_new();
	struct link *l = link_new(loop, "box", &events, &box);
	struct error err = {0};
	char input[1000] = "";

	log_setup("fuzz_link", LOG_LEVEL_ERR,
	          LOG_FORMAT_TEXT); /* an agent cannot cause these lines */
	for (uint32_t id = 1; id <= PROGRAMS; id++)
		hand_over(l, id);
	hand_over(l, RUNNER);
	hand_over_run(l);
	require(link_stdin(l, 1, input, sizeof(input), &err) == 0);
	link_open(l, -1, &setup);
	feed(l, data, size);
	link_free(l);
	loop_free(loop);
	resume(data, size, &box);
	return 0;
}
