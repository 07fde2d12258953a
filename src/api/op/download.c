/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/download.h"

#include "api/json/encode_file.h"
#include "api/pending.h"
#include "api/reply.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include "http/media_type.h"
#include "http/server.h"
#include "http/status.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/*
 * Theory of operation. The box sends metadata (size, times) before the bytes, for the response's
 * header. Only a range that depends on the size (the last bytes; of one state of the file) starts
 * the operation a second time.
 */

#define NSEC 1000000000ULL

static bool take_number(const char *text, size_t len, uint64_t *ret_value)
{
	char digits[21];

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	return parse_u64(digits, ret_value) == 0;
}

void download_parse_range(const char *value, struct download_range *ret_range)
{
	struct download_range range = {.last = UINT64_MAX};
	const char *dash;

	*ret_range = (struct download_range){0};
	if (!value || strncmp(value, "bytes=", 6) != 0)
		return;
	value += 6;
	dash = strchr(value, '-');
	if (!dash || strchr(value, ','))
		return;
	range.suffix = dash == value;
	if (!range.suffix && !take_number(value, (size_t)(dash - value), &range.first))
		return;
	if ((range.suffix || dash[1]) && !take_number(dash + 1, strlen(dash + 1), &range.last))
		return;
	range.asked = range.suffix || range.first <= range.last;
	*ret_range = range;
}

struct download {
	struct pending pending;
	struct session *session;
	struct file_op *op;
	char *path;       /* owned */
	const char *type; /* literal */
	bool tar;
	bool again;                  /* the second operation */
	struct download_range range; /* as requested */
	uint64_t offset, length;     /* of the operation */
	uint64_t left;               /* announced, still to be sent */
	bool streaming;
};

static void download_free(struct download *d)
{
	free(d->path);
	free(d);
}

static void on_left(struct pending *p)
{
	struct download *d = CONTAINER_OF(p, struct download, pending);

	file_cancel(d->op);
	download_free(d);
}

static void on_taken(void *ctx, size_t bytes)
{
	struct download *d = ctx;

	file_grant(d->op, bytes);
}

/* Before the header was sent. */
static void answer_error(struct download *d, const struct error *err)
{
	reply_error(pending_resume(&d->pending), err);
	download_free(d);
}

static void download_failed(void *ctx, const struct error *err)
{
	struct download *d = ctx;

	if (!d->streaming) {
		answer_error(d, err);
		return;
	}
	reply_log(d->pending.req, LOG_LEVEL_DEBUG, "download aborted: %s", err->msg);
	http_stream_abort(d->pending.req);
	download_free(d);
}

static void download_done(void *ctx, const struct box_file_summary *summary)
{
	struct download *d = ctx;
	struct error err = {0};

	(void)summary;
	if (!d->streaming || (!d->tar && d->left > 0)) {
		(void)error_set(&err, ERR_CONFLICT, 0, "the file was truncated while it was read");
		download_failed(d, &err);
		return;
	}
	http_stream_end(d->pending.req);
	download_free(d);
}

static void begin_stream(struct download *d, const struct http_stream_head *head)
{
	struct http_stream_head h = *head;

	h.on_taken = on_taken;
	h.ctx = d;
	d->streaming = true;
	http_stream_start(d->pending.req, &h);
}

static void begin_tar(struct download *d)
{
	const struct http_header headers[] = {
		{"Content-Disposition", "attachment; filename=\"files.tar\""},
	};

	begin_stream(d, &(struct http_stream_head){.status = HTTP_OK,
	                                           .content_type = "application/x-tar",
	                                           .headers = headers,
	                                           .headers_count = ARRAY_SIZE(headers),
	                                           .length = HTTP_LENGTH_UNKNOWN});
}

static void download_data(void *ctx, const char *data, size_t len)
{
	struct download *d = ctx;
	size_t kept = len;

	if (!d->streaming)
		begin_tar(d);
	/* The file grew: send what was announced. */
	if (!d->tar && kept > d->left)
		kept = (size_t)d->left;
	if (!d->tar)
		d->left -= kept;
	if (kept < len)
		file_grant(d->op, len - kept);
	if (kept > 0 && http_stream_write(d->pending.req, data, kept) < 0)
		reply_log(d->pending.req, LOG_LEVEL_DEBUG,
		          "the client does not read: cut off"); /* on_left follows */
}

static int start_read(struct download *d, struct error *err);

/* Again, with a range that is known now. */
static void restart_with_range(struct download *d, uint64_t offset, uint64_t length)
{
	struct error err = {0};

	file_cancel(d->op);
	d->again = true;
	d->offset = offset;
	d->length = length;
	if (start_read(d, &err) < 0)
		answer_error(d, &err);
}

static void http_date(uint64_t mtime_ns, char *ret_text, size_t size)
{
	time_t seconds = (time_t)(mtime_ns / NSEC);
	struct tm tm = {0};

	(void)gmtime_r(&seconds, &tm);
	if (strftime(ret_text, size, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
		ret_text[0] = '\0';
}

static void answer_empty(struct download *d, int status, const struct http_header *headers,
                         size_t count)
{
	const struct http_answer answer = {.status = status,
	                                   .content_type = d->type,
	                                   .body = "",
	                                   .headers = headers,
	                                   .headers_count = count};

	file_cancel(d->op);
	http_reply(pending_resume(&d->pending), &answer);
	download_free(d);
}

static void answer_bad_range(struct download *d, uint64_t size)
{
	char span[40];
	const struct http_header header = {"Content-Range", span};
	struct error err = {0};

	file_cancel(d->op);
	(void)snprintf(span, sizeof(span), "bytes */%" PRIu64, size);
	(void)error_set(&err, ERR_BAD_RANGE, 0, "the file has %" PRIu64 " bytes", size);
	reply_error_header(pending_resume(&d->pending), &err, &header);
	download_free(d);
}

/* Of a file of @size. Return: whether there is one. */
static bool resolve_range(const struct download_range *range, uint64_t size, uint64_t *ret_first,
                          uint64_t *ret_count)
{
	uint64_t last = range->last < size ? range->last : size - 1;

	*ret_first = range->suffix ? (range->last < size ? size - range->last : 0) : range->first;
	if (size == 0 || *ret_first >= size || (range->suffix && range->last == 0))
		return false;
	*ret_count = range->suffix ? size - *ret_first : last - *ret_first + 1;
	return true;
}

static bool is_other_state(const struct http_request *req, const char *etag)
{
	const char *condition = http_header(req, "If-Range");

	return condition && !str_equal(condition, etag);
}

static bool is_right_range(const struct download *d, uint64_t first)
{
	if (!d->range.asked)
		return d->length == UINT64_MAX;
	return first == d->offset && !d->range.suffix;
}

static void download_entry(void *ctx, const struct box_file_entry *entry)
{
	struct download *d = ctx;
	char etag[VIEW_FILE_ETAG_LEN], date[40], span[80];
	const char *known = http_header(d->pending.req, "If-None-Match");
	const struct http_header headers[] = {
		{"ETag", etag},
		{"Last-Modified", date},
		{"Content-Security-Policy",
	         "sandbox"}, /* a program's page has no rights on this origin */
		{"Accept-Ranges", "bytes"},
		{"Content-Range", span},
	};
	uint64_t first = 0, count = entry->size;

	encode_file_etag(entry->inode, entry->mtime_ns, entry->size, etag);
	http_date(entry->mtime_ns, date, sizeof(date));
	if (known && (str_equal(known, etag) || str_equal(known, "*"))) {
		answer_empty(d, HTTP_NOT_MODIFIED, headers, 2);
		return;
	}
	if (is_other_state(d->pending.req, etag))
		d->range.asked = false;
	if (d->range.asked && !resolve_range(&d->range, entry->size, &first, &count)) {
		answer_bad_range(d, entry->size);
		return;
	}
	if (!d->again && !is_right_range(d, first)) {
		restart_with_range(d, first, count);
		return;
	}
	(void)snprintf(span, sizeof(span), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first,
	               first + count - 1, entry->size);
	d->left = str_equal(http_method(d->pending.req), "HEAD") ? 0 : count;
	begin_stream(d, &(struct http_stream_head){.status = d->range.asked ? HTTP_PARTIAL_CONTENT
	                                                                    : HTTP_OK,
	                                           .content_type = d->type,
	                                           .headers = headers,
	                                           .headers_count = d->range.asked ? 5 : 4,
	                                           .length = count});
}

static void download_room(void *ctx)
{
	(void)ctx; /* this operation writes nothing */
}

static int start_read(struct download *d, struct error *err)
{
	const struct box_file_events events = {
		.ctx = d,
		.on_entry = download_entry,
		.on_data = download_data,
		.on_room = download_room,
		.on_done = download_done,
		.on_failed = download_failed,
	};
	const struct box_file_request request = {
		.op = d->tar ? BOX_FILE_TAR : BOX_FILE_READ,
		.path = d->path,
		.offset = d->offset,
		.length = d->length,
		.limit = FILES_TREE_MAX,
	};

	return file_open(d->session, &request, &events, &d->op, err);
}

static void start_first(struct http_request *req, struct download *d)
{
	struct error err = {0};

	pending_wait(&d->pending, req, on_left);
	if (start_read(d, &err) < 0)
		answer_error(d, &err);
}

void download_file(struct http_request *req, struct session *session, const char *path,
                   const char *type)
{
	struct download *d = NEW(struct download);

	d->session = session;
	d->path = xstrdup(path);
	d->type = type ? type : media_type_of(path);
	download_parse_range(http_header(req, "Range"), &d->range);
	d->length = UINT64_MAX;
	if (d->range.asked && !d->range.suffix) {
		d->offset = d->range.first;
		d->length = d->range.last == UINT64_MAX ? UINT64_MAX
		                                        : d->range.last - d->range.first + 1;
	} else if (d->range.suffix || str_equal(http_method(req), "HEAD")) {
		d->length = 0;
	}
	/* HEAD needs no bytes. */
	d->again = str_equal(http_method(req), "HEAD");
	start_first(req, d);
}

void download_tar(struct http_request *req, struct session *session, const char *path)
{
	struct download *d = NEW(struct download);
	struct session_info info;

	d->session = session;
	d->path = xstrdup(path);
	d->tar = true;
	/* Holes and hard links count in full: see guest/file_tar.c. */
	session_info(session, &info);
	d->length = info.limits.workspace_bytes;
	start_first(req, d);
}
