/* SPDX-License-Identifier: Apache-2.0 */
#include "http/fetch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "io/loop.h"
#include <curl/curl.h>
#include <errno.h>

/*
 * libcurl says which sockets and which timer to watch; the loop says when they are ready. Handles
 * may be neither added nor removed inside a callback of libcurl: adding waits for its end, removal
 * is deferred work.
 */

#define CONNECT_TIMEOUT_MS 10000L
#define IDLE_CONNECTIONS   16L

struct fetcher {
	struct loop *loop;
	CURLM *multi;
	struct timer *timer;
	struct list all;
	bool is_inside;   /* libcurl is running, and may call back */
	bool has_waiting; /* handles to add afterwards */
};

struct fetch {
	struct fetcher *fetcher;
	struct list node;
	CURL *easy;
	struct curl_slist *headers;
	struct fetch_request request; /* callbacks only */
	bool is_cancelled, is_stopped, is_waiting;
	char detail[CURL_ERROR_SIZE];
};

/* A socket of libcurl's. */
struct socket {
	struct fetcher *fetcher;
	curl_socket_t fd;
	struct watch *watch;
};

static void free_fetch(void *arg)
{
	struct fetch *f = arg;

	(void)curl_multi_remove_handle(f->fetcher->multi, f->easy);
	curl_easy_cleanup(f->easy);
	curl_slist_free_all(f->headers);
	list_remove(&f->node);
	free(f);
}

static void report_failure(const struct fetch *f, CURLcode code, struct error *err)
{
	const char *detail = f->detail[0] ? f->detail : curl_easy_strerror(code);

	if (f->is_stopped)
		(void)error_set(err, ERR_TOO_LARGE, 0, "stopped");
	else if (code == CURLE_OPERATION_TIMEDOUT)
		(void)error_set(err, ERR_TIMEOUT, 0, "timed out");
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		(void)error_set(err, ERR_UNTRUSTED, 0, "its certificate is not trusted (%s)",
		                detail);
	else
		(void)error_set(err, ERR_UNAVAILABLE, 0, "%s", detail);
}

static void finish_fetches(struct fetcher *x)
{
	const CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(x->multi, &left))) {
		struct error err = {0};
		struct fetch *f = NULL;
		CURLcode code = msg->data.result;

		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &f);
		if (msg->msg != CURLMSG_DONE || f->is_cancelled)
			continue;
		if (code != CURLE_OK)
			report_failure(f, code, &err);
		f->is_cancelled = true;
		f->request.on_done(f->request.ctx, f, code == CURLE_OK ? NULL : &err);
		loop_defer(x->loop, free_fetch, f);
	}
}

static void add_waiting(struct fetcher *x)
{
	struct fetch *f;

	if (!x->has_waiting)
		return;
	x->has_waiting = false;
	LIST_FOREACH (f, &x->all, struct fetch, node) {
		if (!f->is_waiting || f->is_cancelled)
			continue;
		f->is_waiting = false;
		(void)curl_multi_add_handle(x->multi, f->easy);
	}
}

static void act(struct fetcher *x, curl_socket_t fd, int events)
{
	int running;

	x->is_inside = true;
	(void)curl_multi_socket_action(x->multi, fd, events, &running);
	x->is_inside = false;
	add_waiting(x);
	finish_fetches(x);
}

static void on_ready(void *ctx, int events)
{
	struct socket *s = ctx;

	act(s->fetcher, s->fd,
	    (events & WATCH_READ ? CURL_CSELECT_IN : 0) |
	            (events & WATCH_WRITE ? CURL_CSELECT_OUT : 0));
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket)
{
	struct fetcher *x = ctx;
	struct socket *s = socket;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			watch_free(s->watch);
		free(s);
		(void)curl_multi_assign(x->multi, fd, NULL);
		return 0;
	}
	if (!s) {
		s = NEW(struct socket);
		*s = (struct socket){.fetcher = x, .fd = fd};
		s->watch = watch_new(x->loop, fd, on_ready, s);
		(void)curl_multi_assign(x->multi, fd, s);
	}
	watch_set(s->watch, (what & CURL_POLL_IN ? WATCH_READ : 0) |
	                            (what & CURL_POLL_OUT ? WATCH_WRITE : 0));
	return 0;
}

static void on_due(void *ctx)
{
	act(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi, long ms, void *ctx)
{
	struct fetcher *x = ctx;

	(void)multi;
	if (ms < 0)
		timer_stop(x->timer);
	else
		timer_start(x->timer, (uint64_t)ms * USEC_PER_MS);
	return 0;
}

void fetcher_free(struct fetcher *x)
{
	struct fetch *f;

	if (!x)
		return;
	LIST_FOREACH (f, &x->all, struct fetch, node) {
		loop_cancel(x->loop, free_fetch, f);
		free_fetch(f);
	}
	(void)curl_multi_cleanup(x->multi);
	timer_free(x->timer);
	free(x);
}

struct fetcher *fetcher_new(struct loop *loop, struct error *err)
{
	struct fetcher *x;
	CURLM *multi = NULL;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		multi = curl_multi_init();
	if (!multi) {
		error_set(err, ERR_SYSTEM, 0, "start libcurl");
		return NULL;
	}
	x = NEW(struct fetcher);
	*x = (struct fetcher){.loop = loop, .multi = multi};
	list_init(&x->all);
	x->timer = timer_new(loop, on_due, x);
	(void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, x);
	(void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
	(void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, x);
	(void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS);
	return x;
}

static size_t on_write(char *data, size_t size, size_t count, void *ctx)
{
	struct fetch *f = ctx;

	if (f->is_cancelled)
		return 0;
	if (f->request.on_data(f->request.ctx, f, data, size * count) >= 0)
		return size * count;
	f->is_stopped = true;
	return 0;
}

static size_t on_read(char *data, size_t size, size_t count, void *ctx)
{
	struct fetch *f = ctx;
	ssize_t n = -1;

	if (!f->is_cancelled)
		n = f->request.on_body(f->request.ctx, data, size * count);
	if (n >= 0)
		return (size_t)n;
	f->is_stopped = true;
	return CURL_READFUNC_ABORT;
}

static void set_streamed_body(struct fetch *f)
{
	(void)curl_easy_setopt(f->easy, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(f->easy, CURLOPT_READFUNCTION, on_read);
	(void)curl_easy_setopt(f->easy, CURLOPT_READDATA, f);
}

static void add_headers(struct fetch *f, const char *const *headers)
{
	for (; headers && *headers; headers++) {
		struct curl_slist *longer = curl_slist_append(f->headers, *headers);

		assert(longer);
		f->headers = longer;
	}
}

static void set_options(struct fetch *f, const struct fetch_request *r)
{
	CURL *easy = f->easy;

	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, f);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, f->detail);
	(void)curl_easy_setopt(easy, CURLOPT_URL, r->url);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, f->headers);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, f);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	if (r->timeout_us)
		(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
		                       (long)(r->timeout_us / USEC_PER_MS + 1));
	if (r->body) {
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
		(void)curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, r->body);
	}
	if (r->socket_path)
		(void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, r->socket_path);
	if (r->on_body)
		set_streamed_body(f);
	(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, r->method);
}

struct fetch *fetch_start(struct fetcher *x, const struct fetch_request *request)
{
	struct fetch *f = NEW(struct fetch);

	*f = (struct fetch){.fetcher = x, .request = *request, .easy = curl_easy_init()};
	assert(f->easy); /* out of memory */
	list_append(&x->all, &f->node);
	add_headers(f, request->headers);
	set_options(f, request);
	f->is_waiting = x->is_inside;
	x->has_waiting = x->has_waiting || x->is_inside;
	/* Sets the timer to 0: the transfer starts on the loop. */
	if (!f->is_waiting)
		(void)curl_multi_add_handle(x->multi, f->easy);
	return f;
}

void fetch_cancel(struct fetch *f)
{
	if (f->is_cancelled)
		return;
	f->is_cancelled = true;
	loop_defer(f->fetcher->loop, free_fetch, f);
}

int fetch_status(const struct fetch *f)
{
	long status = 0;

	(void)curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

const char *fetch_header(const struct fetch *f, const char *name)
{
	struct curl_header *h = NULL;

	return curl_easy_header(f->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value
	                                                                             : NULL;
}
