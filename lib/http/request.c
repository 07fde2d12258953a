/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/parse.h"
#include "base/str.h"
#include "http/tcp_owner.h"
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define HEADERS_MAX    100
#define ARGUMENTS_MAX  100
#define REQUEST_ID_MAX (sizeof(((struct http_request *)0)->id) - 1)
#define REQUEST_ID_LEN 20

/* What needs no decoding: enough to answer a refused request in the words of its path. */
static char *path_begin(const char *target)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/_-.:";

	return xstrndup(target, strspn(target, plain));
}

struct http_request *request_new(struct http_conn *c, const char *target)
{
	struct http_request *req = NEW(struct http_request);

	req->conn = c;
	req->method = "";
	req->target_len = strlen(target);
	req->path = path_begin(target);
	req->began_us = clock_us();
	id_random(req->id, REQUEST_ID_LEN);
	return req;
}

void request_free(struct http_request *req)
{
	if (!req)
		return;
	if (req->response)
		MHD_destroy_response(req->response);
	str_list_free(req->texts);
	for (size_t i = 0; i < req->added_count; i++)
		free(req->added[i].value);
	http_drop_body(req);
	body_quota_release(req);
	response_quota_drop(req);
	buf_done(&req->pending);
	free(req->note);
	free(req->path);
	free(req);
}

void request_gone(struct http_request *req)
{
	void (*fn)(void *ctx) = req->gone_fn;

	req->gone = true;
	req->gone_fn = NULL;
	if (fn)
		fn(req->gone_ctx);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Return: bytes taken from @s, or 0: not a character of text. */
static size_t decode_char(const char *s, char *ret_c)
{
	size_t taken = 1;
	int high, low;

	*ret_c = s[0];
	if (s[0] == '%') {
		high = hex_digit(s[1]);
		low = high < 0 ? -1 : hex_digit(s[2]);
		if (low < 0)
			return 0;
		*ret_c = (char)(unsigned char)(high << 4 | low);
		taken = 3;
	}
	/* A NUL ends the string for us, but not for a proxy that checks it. */
	return (unsigned char)*ret_c < 0x20 || *ret_c == 0x7f ? 0 : taken;
}

static char *percent_decode(const char *text, size_t len, bool plus_is_space)
{
	cleanup_free char *out = xmalloc(len + 1);
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		size_t taken;

		if (plus_is_space && text[i] == '+') {
			out[used++] = ' ';
			i++;
			continue;
		}
		taken = decode_char(text + i, &out[used]);
		if (taken == 0 || taken > len - i)
			return NULL;
		used++;
		i += taken;
	}
	out[used] = '\0';
	return TAKE_PTR(out);
}

char *http_decode_path(const char *target)
{
	if (target[0] != '/')
		return NULL;
	return percent_decode(target, strcspn(target, "?"), false);
}

struct header_census {
	size_t count, bytes;
	unsigned hosts;
};

static enum MHD_Result count_headers(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
	struct header_census *census = cls;

	(void)kind;
	census->count++;
	census->bytes += strlen(name) + (value ? strlen(value) : 0) + 4;
	census->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
	return MHD_YES;
}

/* Return: whether the query can be decoded, as http_query does with a part of it. */
static bool is_query_valid(const char *query)
{
	cleanup_free char *text = percent_decode(query, strlen(query), true);

	return text;
}

int request_check_line(const struct http_request *req, const char *target, struct error *err)
{
	const char *query = strchr(target, '?');
	size_t count = 0;

	if (req->target_len > REQUEST_LINE_MAX)
		return error_set(err, ERR_TOO_LARGE, 0, "the request line exceeds %d bytes",
		                 REQUEST_LINE_MAX);
	if (query && !is_query_valid(query + 1))
		return error_field(err, "query",
		                   "an escape is malformed, or stands for a control character");
	for (; query; query = strchr(query + 1, '&'))
		count++;
	if (count > ARGUMENTS_MAX)
		return error_set(err, ERR_TOO_LARGE, 0, "the request has more than %d arguments",
		                 ARGUMENTS_MAX);
	return 0;
}

int request_check(struct http_request *req, const char *target, struct error *err)
{
	size_t max = req->conn->server->config.max_header_bytes;
	const char *id = http_header(req, "X-Request-ID");
	struct header_census census = {0};
	cleanup_free char *path = NULL;

	if (id && id_is_valid(id, REQUEST_ID_MAX))
		(void)snprintf(req->id, sizeof(req->id), "%s", id);
	(void)MHD_get_connection_values(req->conn->mhd, MHD_HEADER_KIND, count_headers, &census);
	/* framing.h has checked the rest. */
	if (census.hosts > 1)
		return error_set(err, ERR_INVALID, 0, "Host is specified more than once");
	if (census.bytes > max || census.count > HEADERS_MAX)
		return error_set(err, ERR_TOO_LARGE, 0, "the header exceeds %zu bytes or %d lines",
		                 max, HEADERS_MAX);
	path = http_decode_path(target);
	if (!path)
		return error_set(err, ERR_INVALID, 0, "the path is malformed");
	free(req->path);
	req->path = TAKE_PTR(path);
	return 0;
}

int request_add_body(struct http_request *req, const char *data, size_t len, struct error *err)
{
	size_t max = req->body.max;

	if (buf_add(&req->body, data, len) < 0)
		return error_set(err, ERR_TOO_LARGE, 0, "the body exceeds %zu bytes", max);
	if (body_quota_add(req, len) < 0)
		return error_later(err, ERR_BUSY, ERROR_SOON_US,
		                   "too many bytes of concurrent request bodies");
	return 0;
}

bool request_has_body(const struct http_request *req)
{
	const char *length = http_header(req, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && !str_equal(length, "0")) ||
	       http_header(req, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

const char *http_method(const struct http_request *req)
{
	return req->method;
}

const char *http_path(const struct http_request *req)
{
	return req->path;
}

const char *http_query(const struct http_request *req, const char *name)
{
	/* The decoded copy is a cache. */
	struct http_request *mut = (struct http_request *)(uintptr_t)req;
	const char *raw = NULL;
	size_t count = req->texts ? str_list_count(req->texts) : 0;
	char *text;

	if (MHD_lookup_connection_value_n(req->conn->mhd, MHD_GET_ARGUMENT_KIND, name, strlen(name),
	                                  &raw, NULL) != MHD_YES)
		return NULL;
	if (!raw) /* "?name": no value */
		return "";
	text = percent_decode(raw, strlen(raw), true);
	if (!text)
		return NULL;
	mut->texts = xrealloc_array(mut->texts, count + 2, sizeof(char *));
	mut->texts[count] = text;
	mut->texts[count + 1] = NULL;
	return text;
}

const char *http_header(const struct http_request *req, const char *name)
{
	return MHD_lookup_connection_value(req->conn->mhd, MHD_HEADER_KIND, name);
}

struct header_count {
	const char *name;
	unsigned count;
};

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
	struct header_count *wanted = cls;

	(void)kind;
	(void)value;
	wanted->count += strcasecmp(name, wanted->name) == 0;
	return MHD_YES;
}

unsigned http_header_count(const struct http_request *req, const char *name)
{
	struct header_count wanted = {.name = name};

	(void)MHD_get_connection_values(req->conn->mhd, MHD_HEADER_KIND, count_header, &wanted);
	return wanted.count;
}

bool http_is_unix(const struct http_request *req)
{
	return req->conn->listener->is_unix;
}

const char *http_peer(const struct http_request *req)
{
	return req->conn->peer->name;
}

int http_peer_uid(const struct http_request *req, unsigned *ret_uid)
{
	struct http_conn *c = req->conn;

	/* Not before the first request that wants to know: with keys none does. */
	if (!c->uid_asked && !c->listener->is_unix && c->server->diag_fd >= 0)
		c->has_uid = tcp_owner_find(c->server->diag_fd, c->fd, &c->uid) == 0;
	c->uid_asked = true;
	if (!c->has_uid)
		return -ENOENT;
	*ret_uid = c->uid;
	return 0;
}

void http_set_known(struct http_request *req, const char *account)
{
	conn_set_known(req->conn, account);
}

bool http_is_crowded(const struct http_request *req)
{
	return req->conn->crowded;
}

const char *http_body(const struct http_request *req, size_t *ret_len)
{
	*ret_len = req->body.len;
	return req->body.data ? req->body.data : "";
}

void http_take_body(struct http_request *req, const struct http_body_events *events)
{
	assert(req->phase == REQUEST_HEAD);
	req->takes_body = true;
	req->sink = *events;
}

void http_body_resume(struct http_request *req)
{
	if (!req->body_held || req->phase != REQUEST_BODY)
		return;
	req->body_held = false;
	conn_wait(req->conn, WAIT_REQUEST);
	conn_resume(req->conn);
}

uint64_t http_body_length(const struct http_request *req)
{
	const char *length = http_header(req, MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t bytes = 0;

	/* request_check verified that it is a number. */
	if (length && parse_u64(length, &bytes) == 0)
		return bytes;
	return http_header(req, MHD_HTTP_HEADER_TRANSFER_ENCODING) ? HTTP_LENGTH_UNKNOWN : 0;
}

void http_drop_body(struct http_request *req)
{
	body_quota_drop(req, req->body.len);
	buf_done(&req->body);
}

uint64_t http_received_us(const struct http_request *req)
{
	return req->began_us;
}

const char *http_request_id(const struct http_request *req)
{
	return req->id;
}

void http_add_header(struct http_request *req, const char *name, const char *value)
{
	assert(req->added_count < HTTP_HEADERS_ADDED);
	req->added[req->added_count].name = name;
	req->added[req->added_count++].value = xstrdup(value);
}

void http_set_note(struct http_request *req, const char *text)
{
	free(req->note);
	req->note = xstrdup(text);
}

const char *http_note(const struct http_request *req)
{
	return req->note;
}

void http_set_tag(struct http_request *req, unsigned tag, uintptr_t value)
{
	assert(tag < HTTP_TAGS);
	req->tags[tag] = value;
}

uintptr_t http_tag(const struct http_request *req, unsigned tag)
{
	assert(tag < HTTP_TAGS);
	return req->tags[tag];
}

void http_set_gone(struct http_request *req, void (*fn)(void *ctx), void *ctx)
{
	req->gone_fn = fn;
	req->gone_ctx = ctx;
}
