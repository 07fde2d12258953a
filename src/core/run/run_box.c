/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/pool/pool.h"
#include "core/run/run_internal.h"

/*
 * Theory of operation. An execution gets a box that waited for it in a pool, or one of its own. In
 * the first case the request is kept until its program is known to run: the box, or what waits in
 * it, may have died a moment ago without anybody having been told yet, and then another one is made
 * as if there were no pools, once. An agent that is lost before it has said a word about the code
 * may have given it to its process: nothing leaves such a box but what it says, so that is as good
 * as nothing.
 */

static int give_stdin(struct run *e, const struct run_request *request, struct error *err)
{
	if (request->stdin_len > 0 &&
	    box_stdin(e->box, EXEC_ID, request->stdin_data, request->stdin_len, err) < 0)
		return -1;
	return request->stdin_open ? 0 : box_stdin_end(e->box, EXEC_ID, err);
}

/* One byte more than is kept: whether output was cut is then seen, not guessed. */
static uint64_t output_max(const struct run *e)
{
	return e->decision.output_bytes + 1;
}

static int hand_to_box(struct run *e, const struct run_request *request,
                       const struct exec_file *files, struct error *err)
{
	const struct exec_plan plan = {
		.id = EXEC_ID,
		.argv = (const char *const *)e->decision.argv,
		.env = (const char *const *)e->decision.env,
		.cwd = request->cwd ? request->cwd : "",
		.files = files,
		.files_count = request->files_count + 1,
		.stdout_max = output_max(e),
		.stderr_max = output_max(e),
		.report_max = e->decision.report_bytes,
		.stdin_open = request->stdin_len > 0 || request->stdin_open,
	};

	return box_exec(e->box, &plan, err);
}

/* To the process that waits: its environment it has. Borrowed strings. */
static const char **make_words(char *const *args)
{
	size_t count = args ? str_list_count(args) : 0;
	const char **words = xcalloc(count + 2, sizeof(*words));

	words[0] = "";
	for (size_t i = 0; i < count; i++)
		words[i + 1] = args[i];
	return words;
}

static int hand_to_prepared(struct run *e, const struct run_request *request,
                            const struct exec_file *files, struct error *err)
{
	cleanup_free const char **words = make_words(request->args);
	const struct run_plan plan = {
		.id = EXEC_ID,
		.runner = EXEC_ID,
		.source = e->decision.runner->source,
		.args = words,
		.files = files,
		.files_count = request->files_count + 1,
		.stdout_max = output_max(e),
		.stderr_max = output_max(e),
		.report_max = e->decision.report_bytes,
		.stdin_open = request->stdin_len > 0 || request->stdin_open,
	};

	static_assert(EXEC_ID == POOL_EXEC_ID, "what waits in a box of a pool is its one program");
	return box_run(e->box, &plan, err);
}

static int hand_over(struct run *e, const struct run_request *request, bool prepared,
                     struct error *err)
{
	struct exec_source source = {e->decision.runner->source, request->code, request->code_len};
	attr_unused cleanup_free char *packed = exec_source_ask(&source, request->ask);
	cleanup_free struct exec_file *files = run_request_files(request, &source);
	int r = prepared ? hand_to_prepared(e, request, files, err)
	                 : hand_to_box(e, request, files, err);

	if (r < 0 || (request->stdin_len == 0 && !request->stdin_open))
		return r;
	return give_stdin(e, request, err);
}

static int build_own(struct run *e, const struct run_request *request,
                     const struct box_events *events, struct error *err)
{
	struct run_service *s = e->service;

	if (box_create(s->config.driver, &e->decision.spec, events, &e->box, err) < 0)
		return -1;
	s->boxes++;
	trace_note(&e->outcome.trace, TRACE_BOX);
	tenant_add_box(e->tenant);
	return hand_over(e, request, false, err);
}

/* It is of no use: back to the pools, which see it to its end. */
static void give_back(struct run *e)
{
	e->service->boxes--;
	tenant_drop_box(e->tenant);
	e->pooled = false;
	pools_discard(e->service->pools, e->pool_key, TAKE_PTR(e->box));
	box_spec_make_id(e->decision.spec.id);
}

int run_build(struct run *e, const struct run_request *request, const struct box_events *events,
              struct error *err)
{
	struct run_service *s = e->service;
	struct error lost = {0};
	struct pool_hit hit;

	/* What waits in a pool waits in the workspace itself. */
	if (request->cwd || !pools_take(s->pools, &e->decision, e->tenant_name, &hit))
		return build_own(e, request, events, err);
	e->box = hit.box;
	e->before = hit.before;
	e->pooled = true;
	e->pool_key = hit.key;
	trace_note(&e->outcome.trace, TRACE_BOX);
	s->boxes++;
	tenant_add_box(e->tenant);
	(void)!str_copy(e->decision.spec.id, BOX_ID_LEN, box_id(e->box));
	box_give(e->box, events, e->decision.spec.request_id);
	if (hand_over(e, request, hit.prepared, &lost) == 0) {
		e->kept = run_request_copy(request);
		return 0;
	}
	give_back(e);
	return build_own(e, request, events, err);
}

bool run_build_again(struct run *e, const struct box_events *events, struct error *err)
{
	struct run_request *request = TAKE_PTR(e->kept);
	int r;

	if (!e->pooled || !request) {
		run_request_free(request);
		return false;
	}
	give_back(e);
	r = build_own(e, request, events, err);
	run_request_free(request);
	return r == 0;
}
