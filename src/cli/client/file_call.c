/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/file_call.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/size.h"
#include "cli/client/api_call.h"
#include "cli/client/interrupt.h"
#include "http/client.h"
#include "http/status.h"

#define OBJECT_MAX MIB /* downloads are not buffered */

struct transfer {
	struct file_call *call;
	struct buf object;
};

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct transfer *t = ctx;

	if (!t->call->download || status != HTTP_OK)
		return buf_add(&t->object, data, len);
	t->call->failure = interrupt_write(t->call->interrupt_fd, t->call->fd, data, len);
	return t->call->failure;
}

static ssize_t on_body(void *ctx, char *data, size_t size)
{
	struct file_call *call = ((struct transfer *)ctx)->call;
	ssize_t n = interrupt_read(call->interrupt_fd, call->fd, data, size);

	if (n < 0)
		call->failure = (int)n;
	return n;
}

int file_call_run(struct file_call *call, const struct endpoint *endpoint, json_t **ret_answer,
                  int *ret_status, struct error *err)
{
	cleanup_free char *url = xasprintf("%s%s", endpoint->url, call->path);
	struct transfer t = {.call = call, .object = BUF_INIT(OBJECT_MAX)};
	struct http_client_request request = {
		ENDPOINT_REQUEST(endpoint),
		.method = call->download ? "GET" : "PUT",
		.url = url,
		.cancel_fd = call->interrupt_fd,
		.accept = "*/*",
		.on_data = on_data,
		.on_body = call->download ? NULL : on_body,
		.ctx = &t,
	};
	int r = http_client_run(&request, ret_status, err);

	*ret_answer = NULL;
	if (r == 0 && (!call->download || *ret_status != HTTP_OK)) {
		*ret_answer = api_parse_object(t.object.data, t.object.len, *ret_status, err);
		r = *ret_answer ? 0 : -1;
	}
	buf_done(&t.object);
	return r;
}
