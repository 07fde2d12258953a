/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes of an agent into the host end of the wire, in two pieces: the first byte of the input
 * is where to split. Two programs, a runner and its run, a program and a terminal beside them wait
 * for their agent, and a connection to a port and a listing of ports. Whatever comes, no callback
 * exceeds the grant, none comes for what has ended, no run is without its runner, and after the
 * loss there is none at all.
 */
#include "base/attr.h"
#include "base/log.h"
#include "driver/link.h"
#include "fuzz.h"
#include "io/loop.h"

#define PROGRAMS   2
#define RUNNER     3 /* has no output of its own */
#define RUN        4
#define BESIDE     5 /* has no report */
#define TERMINAL   6 /* nor stderr */
#define EXECS      6
#define STDOUT_MAX 64
#define STDERR_MAX 16
#define REPORT_MAX 32

struct seen {
	bool lost, greeted;
	struct {
		bool started, ended;
		size_t output[OUTPUT_COUNT], report;
	} runs[EXECS + 1];
	struct {
		bool opened, finished, closed;
		size_t bytes;
	} port;
	bool listed;
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

/* The agent decided which ids are runs and runners. */
static void on_any_started(void *ctx, uint32_t id)
{
	struct seen *s = ctx;

	require(!s->lost && s->greeted && id >= 1 && id <= EXECS);
	require(!s->runs[id].started && !s->runs[id].ended);
	s->runs[id].started = true;
}

static void on_started(void *ctx, uint32_t id)
{
	const struct seen *s = ctx;

	require(id != RUN || !s->runs[RUNNER].ended);
	on_any_started(ctx, id);
}

static size_t granted(uint32_t id, enum output_stream stream)
{
	static const size_t ordinary[] = {
		[OUTPUT_STDOUT] = STDOUT_MAX, [OUTPUT_STDERR] = STDERR_MAX};
	static const size_t terminal[] = {
		[OUTPUT_STDOUT] = (size_t)2 * WIRE_TERMINAL_WINDOW, [OUTPUT_STDERR] = 0};

	return id == TERMINAL ? terminal[stream] : ordinary[stream];
}

static void on_output(void *ctx, uint32_t id, enum output_stream stream, const char *data,
                      size_t len)
{
	struct seen *s = ctx;

	require_running(s, id);
	require(id != RUNNER);
	require(stream < OUTPUT_COUNT && data && len > 0);
	s->runs[id].output[stream] += len;
	require(s->runs[id].output[stream] <= granted(id, stream));
}

static void on_report(void *ctx, uint32_t id, const char *data, size_t len)
{
	struct seen *s = ctx;

	require_running(s, id);
	require(id != RUNNER && id != BESIDE && id != TERMINAL);
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

/* As above. */
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

static void on_port_opened(void *ctx)
{
	struct seen *s = ctx;

	require(!s->lost && s->greeted && !s->port.opened && !s->port.closed);
	s->port.opened = true;
}

static void on_port_data(void *ctx, const char *data, size_t len)
{
	struct seen *s = ctx;

	require(!s->lost && s->port.opened && !s->port.finished && !s->port.closed);
	s->port.bytes += len;
	require(data && len > 0 && s->port.bytes <= BOX_PORT_WINDOW);
}

static void on_port_room(void *ctx)
{
	(void)ctx;
	require(false); /* nothing was refused */
}

static void on_port_finished(void *ctx)
{
	struct seen *s = ctx;

	require(!s->lost && s->port.opened && !s->port.finished && !s->port.closed);
	s->port.finished = true;
}

static void on_port_closed(void *ctx, const struct error *err)
{
	struct seen *s = ctx;

	require(!s->lost && !s->port.closed && (err || s->port.finished));
	s->port.closed = true;
}

static void on_port_listed(void *ctx, const struct box_port_rows *rows, const struct error *err)
{
	struct seen *s = ctx;

	require(!s->lost && !s->listed && rows->count <= BOX_LISTED_MAX && !(err && rows->count));
	for (size_t i = 0; i < rows->count; i++)
		require(rows->rows[i].port > (i ? rows->rows[i - 1].port : 0));
	s->listed = true;
}

/* Id 1, which has finished its own side, and id 2. */
static void use_ports(struct link *l, struct seen *seen)
{
	const struct box_port_events events = {.ctx = seen,
	                                       .on_opened = on_port_opened,
	                                       .on_data = on_port_data,
	                                       .on_room = on_port_room,
	                                       .on_finished = on_port_finished,
	                                       .on_closed = on_port_closed};
	struct box_port_list *list = NULL;
	struct box_port *port = NULL;
	struct error err = {0};

	require(link_port_open(l, 80, &events, &port, &err) == 0);
	require(box_port_write(port, "bytes", 5) == 5);
	box_port_finish(port);
	require(link_port_list(l, 0, on_port_listed, seen, &list, &err) == 0);
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
	                         .keep = id == RUNNER,
	                         .beside = id >= BESIDE,
	                         .rows = id == TERMINAL ? 24 : 0,
	                         .cols = id == TERMINAL ? 80 : 0};
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
	*ret_grant = (struct box_grant){.terminal = what->id == TERMINAL,
	                                .forget = what->label[0] == '?'};
	if (what->id != RUNNER) {
		ret_grant->stdout_max = STDOUT_MAX;
		ret_grant->stderr_max = STDERR_MAX;
	}
	if (what->id < BESIDE && what->id != RUNNER)
		ret_grant->report_max = REPORT_MAX;
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
	box.on_started = on_any_started;
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
	hand_over(l, BESIDE);
	hand_over(l, TERMINAL);
	require(link_stdin(l, 1, input, sizeof(input), &err) == 0);
	use_ports(l, &seen);
	link_open(l, -1, &setup);
	feed(l, data, size);
	link_free(l);
	loop_free(loop);
	resume(data, size, &box);
	return 0;
}
