/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The easy interface cannot poll cancel_fd, so each client has a multi handle, which keeps the
 * connection. */

struct http_client {
	CURL *easy;
	CURLM *multi;
	bool busy; /* a request is running */
};

struct transfer {
	const struct http_client_request *request;
	struct http_client *kept; /* borrowed: has the handles; NULL: they are ours */
	CURL *easy;
	CURLM *multi;
	size_t sent; /* bytes of the request's body */
	struct curl_slist *headers;
	bool stopped;
	char detail[CURL_ERROR_SIZE];
	uint64_t ticked_us;
};

/* Of the process: libcurl has one state, and threads may come here at the same time. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode started;

static void start_curl(void)
{
	started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void close_handles(CURL *easy, CURLM *multi)
{
	curl_easy_cleanup(easy);
	(void)curl_multi_cleanup(multi);
}

void http_client_free(struct http_client *kept)
{
	if (!kept)
		return;
	close_handles(kept->easy, kept->multi);
	free(kept);
}

struct http_client *http_client_new(void)
{
	struct http_client *kept = NEW(struct http_client);

	(void)pthread_once(&once, start_curl);
	if (started == CURLE_OK) {
		kept->easy = curl_easy_init();
		kept->multi = curl_multi_init();
	}
	if (kept->easy && kept->multi)
		return kept;
	close_handles(kept->easy, kept->multi);
	free(kept);
	return NULL;
}

static void transfer_done(struct transfer *t)
{
	if (t->multi && t->easy)
		(void)curl_multi_remove_handle(t->multi, t->easy);
	if (t->kept) {
		curl_easy_reset(t->easy);
		t->kept->busy = false;
	} else {
		close_handles(t->easy, t->multi);
	}
	curl_slist_free_all(t->headers);
}
#define cleanup_transfer attr_cleanup(transfer_done)

static size_t on_write(char *data, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	long status = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (t->request->on_data &&
	    t->request->on_data(t->request->ctx, (int)status, data, size * count) < 0) {
		t->stopped = true;
		return 0;
	}
	return size * count;
}

static size_t on_read(char *data, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	ssize_t n = t->request->on_body(t->request->ctx, data, size * count);

	if (n >= 0)
		return (size_t)n;
	t->stopped = true;
	return CURL_READFUNC_ABORT;
}

static size_t on_body_bytes(char *data, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t left = t->request->body_len - t->sent;
	size_t n = left < size * count ? left : size * count;

	if (n > 0)
		memcpy(data, t->request->body + t->sent, n);
	t->sent += n;
	return n;
}

/* libcurl sends a request again if a kept connection ends without a response. The daemon may have
 * run the program. */
static int refuse_rewind(void *ctx, curl_off_t offset attr_unused, int origin attr_unused)
{
	const struct transfer *t = ctx;

	return t->sent == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void set_body(struct transfer *t)
{
	const struct http_client_request *request = t->request;

	(void)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
	if (!t->kept) {
		(void)curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, request->body);
		return;
	}
	(void)curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
	(void)curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_body_bytes);
	(void)curl_easy_setopt(t->easy, CURLOPT_READDATA, t);
	(void)curl_easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
	(void)curl_easy_setopt(t->easy, CURLOPT_SEEKDATA, t);
}

static void add_header(struct transfer *t, const char *text)
{
	struct curl_slist *longer = curl_slist_append(t->headers, text);

	assert(longer);
	t->headers = longer;
}

static int add_headers(struct transfer *t, struct error *err)
{
	const struct http_client_request *request = t->request;
	char text[1024];

	if (str_format(text, sizeof(text), "Accept: %s",
	               request->accept ? request->accept : "application/json") < 0)
		return error_set(err, ERR_INVALID, 0, "the media type is too long");
	add_header(t, text);
	if (request->body)
		add_header(t, "Content-Type: application/json");
	if (request->on_body) {
		add_header(t, "Content-Type: application/octet-stream");
		add_header(t, "Transfer-Encoding: chunked");
	}
	add_header(t, "Expect:"); /* no "100-continue": the daemon is local */
	if (!request->bearer)
		return 0;
	if (str_format(text, sizeof(text), "Authorization: Bearer %s", request->bearer) < 0)
		return error_set(err, ERR_INVALID, 0, "the key is too long");
	add_header(t, text);
	return 0;
}

static void set_options(struct transfer *t)
{
	const struct http_client_request *request = t->request;
	CURL *easy = t->easy;

	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->detail);
	(void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
	/* The daemon decides what "a/../b" means. */
	(void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	/* Ignore the environment's proxies. */
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	if (request->socket_path)
		(void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
	if (request->ca_file)
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
	if (request->timeout_us)
		(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
		                       (long)(request->timeout_us / 1000 + 1));
	if (request->body)
		set_body(t);
	if (request->on_body) {
		(void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
		(void)curl_easy_setopt(easy, CURLOPT_READDATA, t);
	}
	(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void report_progress(struct transfer *t)
{
	curl_off_t sent = 0;
	uint64_t now = clock_us();

	if (!t->request->on_tick || now - t->ticked_us < t->request->tick_us)
		return;
	(void)curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	t->request->on_tick(t->request->ctx, (uint64_t)sent);
	t->ticked_us = clock_us();
}

static bool is_cancelled(const struct http_client_request *request)
{
	struct pollfd cancel = {.fd = request->cancel_fd, .events = POLLIN};

	return request->cancel_fd > 0 && poll(&cancel, 1, 0) > 0;
}

/* Return: 0 and *ret_code at the end, -ECANCELED, or -EIO. */
static int run_transfer(struct transfer *t, CURLcode *ret_code)
{
	struct curl_waitfd cancel = {.fd = t->request->cancel_fd, .events = CURL_WAIT_POLLIN};
	unsigned extra = t->request->cancel_fd > 0;
	int wait_ms = t->request->on_tick ? (int)(t->request->tick_us / 1000 + 1) : 60000;
	const CURLMsg *msg;
	int active = 1, left;

	/* A server may answer before the first poll: what was cancelled earlier is not sent. */
	if (is_cancelled(t->request))
		return -ECANCELED;
	t->ticked_us = clock_us();
	while (active) {
		if (curl_multi_perform(t->multi, &active) != CURLM_OK)
			return -EIO;
		if (!active)
			break;
		report_progress(t);
		if (curl_multi_poll(t->multi, &cancel, extra, wait_ms, NULL) != CURLM_OK)
			return -EIO;
		if (extra && cancel.revents)
			return -ECANCELED;
	}
	msg = curl_multi_info_read(t->multi, &left);
	if (!msg || msg->msg != CURLMSG_DONE)
		return -EIO;
	*ret_code = msg->data.result;
	return 0;
}

/* A TLS server takes a plain request for a broken handshake. */
static bool may_be_tls(const struct transfer *t)
{
	long status = 0;

	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return !t->request->socket_path && status == 0 && str_has_prefix(t->request->url, "http:");
}

static const char *failure_hint(const struct transfer *t, CURLcode code)
{
	static const char plain[] =
		"is not a TLS server, or shares no TLS version or cipher with this "
		"client; without TLS its address starts with http://";
	static const char tls[] = "does not answer with HTTP; with TLS its address "
				  "starts with https://";
	static const char cut[] = "closed the connection before it answered; with TLS its address "
				  "starts with https://";
	static const char broken[] = "closed the connection without a response; it may have "
				     "carried out the request";
	static const struct {
		CURLcode code;
		const char *hint;
	} hints[] = {
		{CURLE_SSL_CONNECT_ERROR, plain},  {CURLE_GOT_NOTHING, tls},
		{CURLE_UNSUPPORTED_PROTOCOL, tls}, {CURLE_WEIRD_SERVER_REPLY, tls},
		{CURLE_SEND_FAIL_REWIND, broken},
	};

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (hints[i].code == code)
			return hints[i].hint;
	if ((code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR) && may_be_tls(t))
		return cut;
	return NULL;
}

static int report_failure(const struct transfer *t, int r, CURLcode code, struct error *err)
{
	const struct http_client_request *request = t->request;
	const char *where = request->socket_path ? request->socket_path : request->url;
	const char *hint;
	long sys = 0;

	if (r == -ECANCELED || t->stopped)
		return error_set(err, ERR_UNAVAILABLE, ECANCELED, "stopped");
	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "connect to %s", where);
	(void)curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &sys);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return error_set(err, ERR_UNTRUSTED, 0,
		                 "the certificate of %s is not trusted%s%s (%s)", where,
		                 request->untrusted ? "; " : "",
		                 request->untrusted ? request->untrusted : "", t->detail);
	if (code == CURLE_SSL_CACERT_BADFILE)
		return error_set(err, ERR_INVALID, 0, "cannot read certificates from '%s'",
		                 request->ca_file);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return error_set(err, ERR_TIMEOUT, 0, "timed out waiting for %s", where);
	if (code == CURLE_COULDNT_CONNECT && request->unreached)
		return error_set(err, ERR_UNAVAILABLE, (int)sys, "cannot connect to %s; %s", where,
		                 request->unreached);
	hint = failure_hint(t, code);
	if (hint)
		return error_set(err, ERR_UNAVAILABLE, 0, "%s %s (%s)", where, hint,
		                 t->detail[0] ? t->detail : curl_easy_strerror(code));
	return error_set(err, ERR_UNAVAILABLE, (int)sys, "%s: %s", where, curl_easy_strerror(code));
}

static int take_handles(struct transfer *t)
{
	struct http_client *kept = t->request->kept;

	(void)pthread_once(&once, start_curl);
	if (kept && !kept->busy) {
		kept->busy = true;
		t->kept = kept;
		t->easy = kept->easy;
		t->multi = kept->multi;
		return 0;
	}
	t->easy = started == CURLE_OK ? curl_easy_init() : NULL;
	t->multi = started == CURLE_OK ? curl_multi_init() : NULL;
	return t->easy && t->multi ? 0 : -ENOMEM;
}

int http_client_run(const struct http_client_request *request, int *ret_status, struct error *err)
{
	cleanup_transfer struct transfer t = {.request = request};
	CURLcode code = CURLE_OK;
	long status = 0;
	int r;

	if (take_handles(&t) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "start libcurl");
	if (add_headers(&t, err) < 0)
		return -1;
	set_options(&t);
	if (curl_multi_add_handle(t.multi, t.easy) != CURLM_OK)
		return error_set(err, ERR_SYSTEM, 0, "start the request");
	r = run_transfer(&t, &code);
	if (r < 0 || code != CURLE_OK)
		return report_failure(&t, r, code, err);
	(void)curl_easy_getinfo(t.easy, CURLINFO_RESPONSE_CODE, &status);
	*ret_status = (int)status;
	return 0;
}
