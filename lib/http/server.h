/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: HTTP/1.1 server on the loop: libmicrohttpd in external epoll mode (only lib/http includes
 * its header). It knows nothing of routes. Limits, time-outs and strictness live here: a request
 * reaches the handler only when it is whole and within its limits.
 *
 * Life of a request: on_headers decides the body limit or refuses; the body is collected;
 * on_request is called once, with everything; the handler answers now or later with http_reply or
 * http_stream_*. When the client goes away before the answer is complete, on_gone of the request is
 * called and nothing more may be done with it. The request is the server's again as soon as
 * http_reply or http_stream_end was called.
 *
 * A client that closes its sending side counts as gone, as with most servers: a half-closed socket
 * cannot be told from a closed one before something is sent.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct http_server;
struct http_request;

struct http_header {
	const char *name;
	const char *value;
};

/* What became of a request. */
struct http_done {
	int status;           /* 0: there was no answer */
	uint64_t body_bytes;  /* of the answer, without its header */
	uint64_t duration_us; /* from the request's first line */
	bool complete;        /* the answer was sent to its end */
};

struct http_handlers {
	void *ctx;
	/* Called when the header is complete. Return 0 and *ret_max_body, or answer the request
	 * with http_reply (its body is then not read) and return -1. A handler that takes the body
	 * as it comes says so here (http_take_body); on_request is then not called. */
	int (*on_headers)(void *ctx, struct http_request *req, size_t *ret_max_body);
	/* The request is whole. */
	void (*on_request)(void *ctx, struct http_request *req);
	/* Replies of the server's own (413 for a body that grew ...) take this form. Requests that
	 * are too slow are cut off; what is no HTTP gets a bare status, or is cut off too. */
	void (*on_error)(void *ctx, struct http_request *req, const struct error *err);
	/* The request is over, once for each whose first line was read; path and method are ""
	 * where they were not understood. Nothing may be done with it any more. May be NULL. */
	void (*on_done)(void *ctx, const struct http_request *req, const struct http_done *done);
};

/* Certificate chain and private key, as PEM text. Borrowed for the call. */
struct http_tls {
	const char *cert;
	const char *key;
};

struct http_server_config {
	struct loop *loop;
	struct http_handlers handlers;
	size_t max_connections;
	size_t max_connections_per_peer;
	size_t max_header_bytes;
	size_t max_bodies_bytes; /* of all requests together: many must not take what one may not */
	size_t max_answers_bytes; /* of all answers together that wait for their readers; beyond it
	                             the slowest of them are cut off */
	uint64_t request_timeout_us; /* first byte to last, absolute */
	uint64_t idle_timeout_us;
};

void http_server_free(struct http_server *s);
struct http_server *http_server_new(const struct http_server_config *config)
	attr_owned(http_server_free);
/** http_server_listen - serve @fd, a listening socket; takes ownership of it. May be repeated. @tls
 * NULL: in the clear; else TLS 1.2 or newer and nothing else. */
int http_server_listen(struct http_server *s, int fd, const struct http_tls *tls,
                       struct error *err) attr_must_check;
/**
 * http_server_renew_tls - new connections get @tls (checked by http_tls_check) from now on; those
 * that are there keep what they have. Nothing happens where nothing speaks TLS, or at the end.
 * Return: 0, or -1 with *err: all is as it was.
 */
int http_server_renew_tls(struct http_server *s, const struct http_tls *tls,
                          struct error *err) attr_must_check;
/** http_tls_check - whether they can be read and belong together; ERR_CONFIG says what is wrong. */
int http_tls_check(const struct http_tls *tls, struct error *err) attr_must_check;
/**
 * http_server_quiesce - accept no new connections; requests under way are served to their end.
 * @on_quiet is called from the loop once no connection is left.
 */
void http_server_quiesce(struct http_server *s, void (*on_quiet)(void *ctx), void *ctx);
size_t http_server_connections(const struct http_server *s);

/** http_listen_tcp - "127.0.0.1:8000" or "[::1]:8000" (numeric) into a listening socket. */
int http_listen_tcp(const char *address, int *ret_fd, struct error *err) attr_must_check;
/** http_listen_unix - at @path with @mode; a dead socket there is replaced, a live one refused. */
int http_listen_unix(const char *path, unsigned mode, int *ret_fd,
                     struct error *err) attr_must_check;

/** http_address_is_loopback - whether only this host can reach @address (as for http_listen_tcp).
 */
bool http_address_is_loopback(const char *address);
/** http_listen_name - "http://127.0.0.1:8000": where a TCP socket really listens, by @scheme. */
int http_listen_name(int fd, const char *scheme, char *ret_text, size_t size) attr_must_check;

/* What a handler may ask of a request. Strings are valid as long as the request. */
const char *http_method(const struct http_request *req);
const char *http_path(const struct http_request *req); /* decoded once; no query */
const char *http_query(const struct http_request *req, const char *name); /* NULL: not there */
const char *http_header(const struct http_request *req, const char *name);
/** http_header_count - how often @name was sent: more than one Host is an attack. */
unsigned http_header_count(const struct http_request *req, const char *name);
bool http_is_unix(const struct http_request *req); /* came by the Unix socket */
/** http_peer - who sent it, as far as limits are concerned: "192.0.2.1", "uid:1000", or "". */
const char *http_peer(const struct http_request *req);
/** http_peer_uid - whose process it was that connected to the Unix socket. Return: 0 or -ENOENT. */
int http_peer_uid(const struct http_request *req, unsigned *ret_uid) attr_must_check;
/** http_is_crowded - the server, or this peer, has more connections than configured. A few more are
 * accepted so that they can be told so, and so that a health check still gets its answer. */
bool http_is_crowded(const struct http_request *req);
const char *http_body(const struct http_request *req, size_t *ret_len);
/** http_drop_body - the handler has taken what it needs; the answer may take a while. */
void http_drop_body(struct http_request *req);
/** http_received_us - when its first line was there, by the monotonic clock. */
uint64_t http_received_us(const struct http_request *req);
/** http_request_id - made by the server, or taken from X-Request-ID when that is well-formed. */
const char *http_request_id(const struct http_request *req);

#define HTTP_HEADERS_ADDED 8
/** http_add_header - to go with the answer, whoever makes it; @value is copied, @name is a literal.
 * At most HTTP_HEADERS_ADDED; not with answers in the middle of a body. */
void http_add_header(struct http_request *req, const char *name, const char *value);

#define HTTP_TAGS 4
/** http_set_tag - something of the handlers' own to go with the request; 0 before it is set. */
void http_set_tag(struct http_request *req, unsigned tag, uintptr_t value);
uintptr_t http_tag(const struct http_request *req, unsigned tag);

/** http_set_note - text to go with the request for whoever is told of its end; copied. */
void http_set_note(struct http_request *req, const char *text);
const char *http_note(const struct http_request *req); /* NULL: none */

/** http_set_body_quota - on whose account the bytes of this request's body are, by a name of the
 * handlers' own. Called from on_headers. Those who have bodies under way have a share of
 * max_bodies_bytes each, which nobody else can take. */
void http_set_body_quota(struct http_request *req, const char *name);

/** http_set_gone - @fn is called if the client leaves before the answer is complete. */
void http_set_gone(struct http_request *req, void (*fn)(void *ctx), void *ctx);

/* A whole answer. Everything is borrowed for the call, but see http_reply_owned. */
struct http_answer {
	int status;
	const char *content_type;
	const char *body;
	size_t len;
	const struct http_header *headers; /* further ones; NULL: none */
	size_t headers_count;
};

/** http_reply - the body is copied. */
void http_reply(struct http_request *req, const struct http_answer *answer);
/** http_reply_owned - without a copy: takes ownership of the body, which came from malloc. */
void http_reply_owned(struct http_request *req, const struct http_answer *answer);

/*
 * A body that is taken as it comes, whatever its size: nothing of it is kept here. Called from
 * on_headers; then nothing else is. The client has its time for every HTTP_STEP bytes, not for the
 * whole: who sends more slowly is cut off. An answer before the end of the body closes the
 * connection.
 */
#define HTTP_STEP 65536

struct http_body_events {
	void *ctx;
	/* Return: how many bytes were taken. When not all, no more come until http_body_resume. */
	size_t (*on_data)(void *ctx, const char *data, size_t len);
	void (*on_end)(void *ctx);
};
void http_take_body(struct http_request *req, const struct http_body_events *events);
void http_body_resume(struct http_request *req);
/** http_body_length - what was announced, or HTTP_LENGTH_UNKNOWN. */
#define HTTP_LENGTH_UNKNOWN UINT64_MAX
uint64_t http_body_length(const struct http_request *req);

/*
 * An answer that is made as fast as it is taken: http_stream_start, then http_stream_write and
 * _end as below. @on_taken says how many bytes are on their way to the client; a writer that has no
 * more than so many outstanding never fills the memory. A client that takes nothing for its time is
 * cut off.
 */
struct http_stream_head {
	int status;
	const char *content_type;
	const struct http_header *headers;
	size_t headers_count;
	uint64_t length; /* bytes that will come, exactly; HTTP_LENGTH_UNKNOWN: chunked */
	void (*on_taken)(void *ctx, size_t bytes); /* from the loop */
	void *ctx;
};
void http_stream_start(struct http_request *req, const struct http_stream_head *head);
/** http_stream_abort - the rest cannot be had: the connection is cut, so that nobody takes the part
 * for the whole. The request is the server's again. */
void http_stream_abort(struct http_request *req);

/* A chunked answer in pieces: begin, write ..., end. The pieces are kept until sent. */
void http_stream_begin(struct http_request *req, int status, const char *content_type);
/** http_stream_write - copied. Return: 0, or -ENOBUFS when the client lets more than 16 MiB wait,
 * or when it is among the slowest and others need the room: the connection is then cut. */
int http_stream_write(struct http_request *req, const char *data, size_t len) attr_must_check;
void http_stream_end(struct http_request *req);

/**
 * http_cut_others - of the server that @req came to, connections whose request was handed over and
 * @fn holds for are cut: its handler hears that the client has gone. Not @req's own, no WebSocket.
 */
void http_cut_others(const struct http_request *req,
                     bool (*fn)(void *ctx, const struct http_request *other), void *ctx);
