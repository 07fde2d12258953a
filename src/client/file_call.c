/* SPDX-License-Identifier: Apache-2.0 */
#include "client/file_call.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cancel_io.h"
#include "base/size.h"
#include "client/api_call.h"
#include "http/client.h"
#include "http/status.h"

#define OBJECT_MAX MIB /* downloads are not buffered */

struct transfer {
	struct file_call *call;
	struct buf object;
};

static void report_bytes(const struct file_call *call, size_t bytes)
{
	if (call->on_bytes)
		call->on_bytes(call->ctx, bytes);
}

static int on_data(void *ctx, int status, const char *data, size_t len)
{
	struct transfer *t = ctx;

	if (!t->call->download || status != HTTP_OK)
		return buf_add(&t->object, data, len);
	t->call->failure = t->call->memory
	                           ? buf_add(t->call->memory, data, len)
	                           : cancel_write(t->call->cancel_fd, t->call->fd, data, len);
	report_bytes(t->call, len);
	return t->call->failure;
}

static ssize_t take_memory(struct file_call *call, char *data, size_t size)
{
	size_t left = call->memory->len - call->taken;
	size_t n = left < size ? left : size;

	if (n > 0)
		memcpy(data, call->memory->data + call->taken, n);
	return (ssize_t)n;
}

static ssize_t on_body(void *ctx, char *data, size_t size)
{
	struct file_call *call = ((struct transfer *)ctx)->call;
	ssize_t n = call->memory ? take_memory(call, data, size)
	                         : cancel_read(call->cancel_fd, call->fd, data, size);

	if (n < 0) {
		call->failure = (int)n;
		return n;
	}
	call->taken += (size_t)n;
	report_bytes(call, (size_t)n);
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
		.cancel_fd = call->cancel_fd,
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
