/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/fetch.h"
#include "io/loop.h"
#include "remote/docker.h"
#include "json/json_dump.h"

/*
 * Theory of operation. Three kinds of end: the server answered, which may be a refusal; nothing
 * answered; or something answered that is not a Docker Engine. Only the first counts as a success
 * for the circuit breaker. A call is made once: what to do about its failure is for its caller,
 * who knows whether it may have had an effect.
 */

#define MESSAGE_MAX 160

struct docker_call {
	struct list node; /* docker.calls */
	struct docker *docker;
	struct fetch *fetch; /* NULL: the breaker is open */
	struct buf answer;
	bool is_stream;
	ssize_t (*on_body)(void *ctx, char *data, size_t size);
	docker_done_fn *on_done;
	void *ctx;
};

static void free_call(struct docker_call *c)
{
	list_remove(&c->node);
	buf_done(&c->answer);
	free(c);
}

static void finish(struct docker_call *c, const struct docker_answer *answer)
{
	docker_done_fn *on_done = c->on_done;
	void *ctx = c->ctx;

	free_call(c);
	on_done(ctx, answer);
}

static int on_data(void *ctx, struct fetch *f, const char *data, size_t len)
{
	struct docker_call *c = ctx;

	(void)f;
	return buf_add(&c->answer, data, len);
}

static ssize_t on_body(void *ctx, char *data, size_t size)
{
	struct docker_call *c = ctx;

	return c->on_body(c->ctx, data, size);
}

/* An answer without a body is one; what Docker sends otherwise is JSON. */
static bool is_docker(const struct docker_call *c, int status, const json_t *json)
{
	if (c->answer.len == 0)
		return status < 400;
	return json != NULL;
}

static void report_no_answer(const struct docker_call *c, const struct error *why,
                             struct error *err)
{
	cleanup_close int sock = -1;
	struct error reason = {0};

	/* If it is not even there, the remedy is another one. */
	sock = docker_connect(c->docker, &reason);
	if (sock < 0)
		*err = reason;
	else
		(void)error_set(err, ERR_UNAVAILABLE, 0, "Docker at %.80s does not answer: %.120s",
		                c->docker->socket, why->msg);
}

static void on_done(void *ctx, struct fetch *f, const struct error *why)
{
	struct docker_call *c = ctx;
	struct docker_answer answer = {.status = fetch_status(f)};
	struct breaker *breaker = &c->docker->breaker;
	struct error err = {0};
	json_t *json = NULL;

	if (!why && c->answer.len > 0)
		json = (c->is_stream ? docker_parse_last : docker_parse)(c->answer.data,
		                                                         c->answer.len);
	if (why)
		report_no_answer(c, why, &err);
	else if (!is_docker(c, answer.status, json))
		(void)error_set(&err, ERR_UNAVAILABLE, 0,
		                "what answers at %.80s is not a Docker Engine (status %d, no JSON)",
		                c->docker->socket, answer.status);
	if (error_is_set(&err))
		breaker_failed(breaker, clock_us());
	else
		breaker_succeeded(breaker);
	answer.json = json;
	answer.err = error_is_set(&err) ? &err : NULL;
	finish(c, &answer);
	json_decref(json);
}

static void refuse_open(void *arg)
{
	struct docker_call *c = arg;
	struct error err = {0};
	uint64_t wait_us = breaker_wait_us(&c->docker->breaker, clock_us());

	(void)error_set(&err, ERR_UNAVAILABLE, 0,
	                "Docker at %.80s did not answer lately; the next attempt is in %llu s",
	                c->docker->socket, (unsigned long long)(wait_us / USEC_PER_SEC + 1));
	finish(c, &(struct docker_answer){.err = &err});
}

static void start_fetch(struct docker_call *c, const struct docker_request *request)
{
	static const char *const json_headers[] = {"Content-Type: application/json",
	                                           "Expect:", NULL};
	static const char *const tar_headers[] = {"Content-Type: application/x-tar",
	                                          "Expect:", NULL};
	cleanup_free char *url = xasprintf("http://docker%s%s", c->docker->version, request->path);
	cleanup_free char *body = request->body ? json_dump_text(request->body, 0) : NULL;

	c->fetch = fetch_start(c->docker->fetcher,
	                       &(struct fetch_request){
				       .method = request->method,
				       .socket_path = c->docker->socket,
				       .url = url,
				       .body = body,
				       .body_len = body ? strlen(body) : 0,
				       .on_body = request->on_body ? on_body : NULL,
				       .headers = request->on_body ? tar_headers : json_headers,
				       .timeout_us = request->timeout_us,
				       .on_data = on_data,
				       .on_done = on_done,
				       .ctx = c,
			       });
}

struct docker_call *docker_call(struct docker *d, const struct docker_request *request)
{
	struct docker_call *c = NEW(struct docker_call);

	*c = (struct docker_call){
		.docker = d,
		.answer = BUF_INIT(DOCKER_ANSWER_MAX),
		.is_stream = request->is_stream,
		.on_body = request->on_body,
		.on_done = request->on_done,
		.ctx = request->ctx,
	};
	list_append(&d->calls, &c->node);
	if (breaker_allows(&d->breaker, clock_us()))
		start_fetch(c, request);
	else
		loop_defer(d->loop, refuse_open, c);
	return c;
}

void docker_call_cancel(struct docker_call *c)
{
	if (!c)
		return;
	if (c->fetch) {
		fetch_cancel(c->fetch);
		breaker_abandoned(&c->docker->breaker);
	} else {
		loop_cancel(c->docker->loop, refuse_open, c);
	}
	free_call(c);
}

void docker_calls_cancel(struct docker *d)
{
	struct docker_call *c;

	LIST_FOREACH (c, &d->calls, struct docker_call, node)
		docker_call_cancel(c);
}

int docker_refusal(const struct docker_answer *answer, const char *what, struct error *err)
{
	char message[MESSAGE_MAX];

	if (answer->err) {
		*err = *answer->err;
		return -1;
	}
	docker_read_message(answer->json, message, sizeof(message));
	return error_set(err, ERR_BOX_FAILED, 0, "Docker cannot %s (status %d): %s", what,
	                 answer->status, message);
}

int docker_connect(const struct docker *d, struct error *err)
{
	static const struct {
		int sys;
		const char *remedy;
	} rows[] = {
		{ENOENT, "Docker is not running there: apt-get install docker.io, or systemctl "
	                 "start docker"},
		{ECONNREFUSED, "Docker is not running there: systemctl start docker"},
		{EACCES, "add the user of the daemon to the group that owns the socket (usually "
	                 "docker)"},
		{ENOTSOCK, "name the socket of Docker in the settings of the engine"},
	};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup_close int sock = fd_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int sys;

	if (str_copy(address.sun_path, sizeof(address.sun_path), d->socket) < 0)
		return error_set(err, ERR_CONFIG, 0, "the path of Docker's socket is too long: %s",
		                 d->socket);
	if (sock < 0)
		return error_set(err, ERR_SYSTEM, -sock, "socket to Docker");
	if (connect(sock, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return TAKE_FD(sock);
	sys = errno;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].sys == sys)
			return error_set(err, ERR_UNAVAILABLE, sys, "%.80s: %s", d->socket,
			                 rows[i].remedy);
	return error_set(err, ERR_UNAVAILABLE, sys, "cannot connect to Docker at %s", d->socket);
}
