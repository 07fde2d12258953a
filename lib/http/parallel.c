/* SPDX-License-Identifier: Apache-2.0 */
#include "http/parallel.h"

#include "base/alloc.h"
#include "base/list.h"
#include "base/str.h"
#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#define IDLE_MAX 8L
#define FDS_MAX  8

struct http_exchange {
	struct list node;
	struct http_parallel *parallel;
	CURL *easy;
	struct curl_slist *headers;
	char *body;
	void *ctx;
	void (*on_header)(void *ctx, const char *line, size_t len);
	void (*on_data)(void *ctx, int status, const char *data, size_t len);
	void (*on_done)(void *ctx, int status, const struct error *err);
};

struct http_parallel {
	CURLM *multi;
	struct list exchanges;
	size_t count;
};

struct http_parallel *http_parallel_new(struct error *err)
{
	struct http_parallel *p;

	/* Idempotent; the program has one thread. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		(void)error_set(err, ERR_SYSTEM, 0, "start libcurl");
		return NULL;
	}
	p = NEW(struct http_parallel);
	list_init(&p->exchanges);
	p->multi = curl_multi_init();
	assert(p->multi);
	(void)curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS, IDLE_MAX);
	return p;
}

static void exchange_free(struct http_exchange *x)
{
	list_remove(&x->node);
	x->parallel->count--;
	(void)curl_multi_remove_handle(x->parallel->multi, x->easy);
	curl_easy_cleanup(x->easy);
	curl_slist_free_all(x->headers);
	free(x->body);
	free(x);
}

void http_parallel_free(struct http_parallel *p)
{
	struct http_exchange *x;

	if (!p)
		return;
	LIST_FOREACH (x, &p->exchanges, struct http_exchange, node)
		exchange_free(x);
	(void)curl_multi_cleanup(p->multi);
	free(p);
}

size_t http_parallel_count(const struct http_parallel *p)
{
	return p->count;
}

static int status_of(const struct http_exchange *x)
{
	long status = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static size_t on_write(char *data, size_t size, size_t count, void *ctx)
{
	const struct http_exchange *x = ctx;

	x->on_data(x->ctx, status_of(x), data, size * count);
	return size * count;
}

static size_t on_line(char *data, size_t size, size_t count, void *ctx)
{
	const struct http_exchange *x = ctx;
	size_t len = size * count;

	while (len > 0 && (data[len - 1] == '\r' || data[len - 1] == '\n'))
		len--;
	if (x->on_header)
		x->on_header(x->ctx, data, len);
	return size * count;
}

static void add_header(struct http_exchange *x, const char *text)
{
	struct curl_slist *longer = curl_slist_append(x->headers, text);

	assert(longer);
	x->headers = longer;
}

static int add_headers(struct http_exchange *x, const struct http_parallel_request *request,
                       struct error *err)
{
	char text[1024];

	for (const char *const *h = request->headers; h && *h; h++)
		add_header(x, *h);
	if (request->body)
		add_header(x, "Content-Type: application/json");
	add_header(x, "Expect:"); /* no "100-continue": the daemon is local */
	if (!request->bearer)
		return 0;
	if (str_format(text, sizeof(text), "Authorization: Bearer %s", request->bearer) < 0)
		return error_set(err, ERR_INVALID, 0, "the key is too long");
	add_header(x, text);
	return 0;
}

static void set_options(struct http_exchange *x, const struct http_parallel_request *request)
{
	CURL *easy = x->easy;

	(void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, x->headers);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, x);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_line);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, x);
	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, x);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	/* Ignore proxies of the environment. */
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	if (request->socket_path)
		(void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
	if (request->ca_file)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
	if (x->body) {
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
		                       (curl_off_t)request->body_len);
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, x->body);
	}
	(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

int http_parallel_add(struct http_parallel *p, const struct http_parallel_request *request,
                      struct error *err)
{
	struct http_exchange *x = NEW(struct http_exchange);

	x->parallel = p;
	x->ctx = request->ctx;
	x->on_header = request->on_header;
	x->on_data = request->on_data;
	x->on_done = request->on_done;
	x->body = request->body ? xmemdup0(request->body, request->body_len) : NULL;
	x->easy = curl_easy_init();
	list_append(&p->exchanges, &x->node);
	p->count++;
	if (!x->easy || add_headers(x, request, err) < 0) {
		if (!error_is_set(err))
			(void)error_set(err, ERR_SYSTEM, ENOMEM, "start libcurl");
		exchange_free(x);
		return -1;
	}
	set_options(x, request);
	if (curl_multi_add_handle(p->multi, x->easy) == CURLM_OK)
		return 0;
	exchange_free(x);
	return error_set(err, ERR_SYSTEM, 0, "start the request");
}

static void finish_exchange(struct http_exchange *x, CURLcode code)
{
	void (*on_done)(void *ctx, int status, const struct error *err) = x->on_done;
	void *ctx = x->ctx;
	int status = status_of(x);
	struct error err = {0};

	if (code != CURLE_OK)
		(void)error_set(&err, ERR_UNAVAILABLE,
		                code == CURLE_COULDNT_CONNECT ? ECONNREFUSED : 0, "%s",
		                curl_easy_strerror(code));
	exchange_free(x);
	on_done(ctx, status, error_is_set(&err) ? &err : NULL);
}

static int perform(struct http_parallel *p, struct error *err)
{
	const CURLMsg *msg;
	int active, left;

	if (curl_multi_perform(p->multi, &active) != CURLM_OK)
		return error_set(err, ERR_SYSTEM, 0, "connect to the daemon");
	while ((msg = curl_multi_info_read(p->multi, &left))) {
		struct http_exchange *x = NULL;

		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&x);
		finish_exchange(x, msg->data.result);
	}
	return 0;
}

int http_parallel_wait(struct http_parallel *p, struct pollfd *fds, size_t count, int timeout_ms,
                       struct error *err)
{
	struct curl_waitfd waits[FDS_MAX];

	assert(count <= FDS_MAX);
	if (perform(p, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		waits[i] = (struct curl_waitfd){.fd = fds[i].fd, .events = CURL_WAIT_POLLIN};
		fds[i].revents = 0;
	}
	if (curl_multi_poll(p->multi, waits, (unsigned)count, timeout_ms, NULL) != CURLM_OK)
		return error_set(err, ERR_SYSTEM, 0, "wait for the daemon");
	for (size_t i = 0; i < count; i++)
		fds[i].revents = waits[i].revents;
	return perform(p, err);
}
