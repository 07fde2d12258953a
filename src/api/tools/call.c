/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tools/call.h"

#include "api/op/file.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/run/run_row.h"

void tool_args_done(struct tool_args *args)
{
	decoded_run_done(&args->exec);
	session_request_done(&args->session);
	free(args->working_dir);
	str_list_free(args->packages);
	json_decref(args->options);
	free(args->sandbox_id);
	free(args->image);
	free(args->workspace_dir);
	free(args->path);
	free(args->content);
	free(args->mode);
	json_decref(args->checksum);
	free(args->execution_id);
	free(args->query);
	free(args->callee);
	json_decref(args->arguments);
	*args = (struct tool_args){0};
}

void call_init(struct call *call, struct router *r, const struct principal *who,
               const char *request_id)
{
	call->router = r;
	call->principal = who;
	call->request_id = xstrdup(request_id);
}

void call_release(struct call *call)
{
	assert(!call->state && !call->cancel); /* ended or cancelled before */
	tool_args_done(&call->args);
	json_decref(call->asked);
	json_decref(call->log);
	free(call->request_id);
	*call = (struct call){0};
}

void call_cancel(struct call *call)
{
	if (call->cancel)
		call->cancel(call->work);
	call->cancel = NULL;
	if (call->state)
		call->free_state(TAKE_PTR(call->state));
}

void call_end(struct call *call, json_t *result, const struct error *failure)
{
	call->cancel = NULL;
	if (call->state)
		call->free_state(TAKE_PTR(call->state));
	call->events.on_done(call->events.ctx, result, failure);
	json_decref(result);
}

void call_finish(struct call *call, json_t *result)
{
	call_end(call, result, NULL);
}

void call_fail(struct call *call, const struct error *err)
{
	call_end(call, NULL, err);
}

void call_wait(struct call *call, void *work, void (*cancel)(void *work))
{
	call->work = work;
	call->cancel = cancel;
}

static void cancel_search(void *work)
{
	store_load_cancel(work);
}

void call_wait_store(struct call *call, struct store_load *search)
{
	call_wait(call, search, cancel_search);
}

static void cancel_collect(void *work)
{
	op_file_cancel(work);
}

void call_wait_file(struct call *call, struct op_file *collect)
{
	call_wait(call, collect, cancel_collect);
}
