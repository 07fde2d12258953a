/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: HTTP/1.1 server on the loop: libmicrohttpd in external epoll mode (only lib/http includes
 * its header). It knows no routes. A request reaches the handler only when complete and within its
 * limits.
 *
 * Life of a request: on_headers sets the body limit or rejects; the body is collected; on_request
 * is called once; the handler responds now or later with http_reply or http_stream_*. If the client
 * disconnects first, on_gone is called and the request must not be used again. After http_reply or
 * http_stream_end the request belongs to the server again.
 *
 * A client that closes its sending side counts as disconnected: a half-closed socket looks like a
 * closed one until something is sent.
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

struct http_done {
	int status;          /* 0: no response */
	uint64_t body_bytes; /* of the response, without its header */
	uint64_t duration_us;
	bool complete;
};

struct http_handlers {
	void *ctx;
	/* The header is complete. Return 0 and *ret_max_body, or respond with http_reply (the body
	 * is not read) and return -1. A handler that streams the body calls http_take_body here;
	 * on_request is not called. */
	int (*on_headers)(void *ctx, struct http_request *req, size_t *ret_max_body);
	void (*on_request)(void *ctx, struct http_request *req);
	/* Format the server's own error response, such as 413. Slow requests are cut off; bytes
	 * that are not HTTP get a bare status or are cut off. */
	void (*on_error)(void *ctx, struct http_request *req, const struct error *err);
	/* Called once for each request whose first line was read. Path and method are "" if they
	 * could not be parsed. May be NULL. */
	void (*on_done)(void *ctx, const struct http_request *req, const struct http_done *done);
};

/* PEM text, borrowed for the call. */
struct http_tls {
	const char *cert;
	const char *key;
};

struct http_server_config {
	struct loop *loop;
	struct http_handlers handlers;
	size_t max_connections; /* over TCP, and as many on the Unix socket */
	size_t max_connections_per_peer;
	size_t max_connections_per_local_peer; /* of the Unix socket, or a loopback address */
	size_t max_header_bytes;
	size_t max_bodies_bytes;
	size_t max_answers_bytes;    /* of all responses; beyond it slow readers are cut */
	uint64_t request_timeout_us; /* first byte to last, absolute */
	uint64_t idle_timeout_us;
};

void http_server_free(struct http_server *s);
struct http_server *http_server_new(const struct http_server_config *config)
	attr_owned(http_server_free);
/**
 * http_server_identify - with @fd from tcp_owner_open, http_peer_uid knows local peers of TCP too.
 * Takes ownership; -1: it does not.
 */
void http_server_identify(struct http_server *s, int fd);
/**
 * http_server_listen - serve @fd, a listening socket; takes ownership. May be repeated. @tls NULL:
 * plain; else TLS 1.2 or newer.
 */
int http_server_listen(struct http_server *s, int fd, const struct http_tls *tls,
                       struct error *err) attr_must_check;
/**
 * http_server_renew_tls - new connections use @tls (checked by http_tls_check); existing ones keep
 * theirs. No-op without TLS listeners or while quiescing. Return: 0, or -1 with *err and nothing
 * changed.
 */
int http_server_renew_tls(struct http_server *s, const struct http_tls *tls,
                          struct error *err) attr_must_check;
/** http_tls_check - whether both parse and match; else ERR_CONFIG. */
int http_tls_check(const struct http_tls *tls, struct error *err) attr_must_check;
/**
 * http_server_quiesce - accept no new connections; finish requests. The loop calls @on_quiet when
 * no connection is left.
 */
void http_server_quiesce(struct http_server *s, void (*on_quiet)(void *ctx), void *ctx);
size_t http_server_connections(const struct http_server *s);
/** http_server_usage - of max_connections, over TCP or on the Unix socket, whichever has more. */
double http_server_usage(const struct http_server *s);
/** http_server_take_evicted - connections turned away to make room since the last call. */
size_t http_server_take_evicted(struct http_server *s);

/** http_listen_tcp - "127.0.0.1:8000" or "[::1]:8000", numeric. */
int http_listen_tcp(const char *address, int *ret_fd, struct error *err) attr_must_check;
/** http_listen_unix - at @path with @mode; replaces a dead socket, refuses a live one. */
int http_listen_unix(const char *path, unsigned mode, int *ret_fd,
                     struct error *err) attr_must_check;

/** http_address_is_loopback - whether only this host can reach @address. */
bool http_address_is_loopback(const char *address);
/** http_listen_name - "http://127.0.0.1:8000": the socket's actual address, with @scheme. */
int http_listen_name(int fd, const char *scheme, char *ret_text, size_t size) attr_must_check;

/* Strings are valid as long as the request. */
const char *http_method(const struct http_request *req);
/** http_path - decoded once, without the query; of a request that was refused, its beginning. */
const char *http_path(const struct http_request *req);
const char *http_query(const struct http_request *req, const char *name); /* NULL: absent */
const char *http_header(const struct http_request *req, const char *name);
/** http_header_count - more than one Host is an attack. */
unsigned http_header_count(const struct http_request *req, const char *name);
bool http_is_unix(const struct http_request *req);
/** http_peer - the client as limits count it: "192.0.2.1", "2001:db8::/64", "uid:1000", or "". */
const char *http_peer(const struct http_request *req);
/**
 * http_peer_uid - the user who connected, or over TCP the one who created the peer's socket
 * (tcp_owner.h), asked for once per connection. Return: 0 or -ENOENT.
 */
int http_peer_uid(const struct http_request *req, unsigned *ret_uid) attr_must_check;
/** HTTP_ACCOUNT_MAX - longest name of an account; what exceeds it is not distinguished. */
#define HTTP_ACCOUNT_MAX 80
/**
 * http_set_known - the caller is authenticated: the connection makes room for others only when
 * idle, and after those whose callers are not. From now on it counts for @account of its peer, no
 * longer for the peer itself: many callers may share an address, that of a proxy. If the account
 * has too many, the connection is crowded.
 */
void http_set_known(struct http_request *req, const char *account);
/**
 * http_is_crowded - too many connections of the server, peer or account, and none that could make
 * room. A few more are accepted for an error response or a health check.
 */
bool http_is_crowded(const struct http_request *req);
const char *http_body(const struct http_request *req, size_t *ret_len);
void http_drop_body(struct http_request *req);
/** http_received_us - when its first line was read (monotonic). */
uint64_t http_received_us(const struct http_request *req);
/** http_request_id - generated, or a well-formed X-Request-ID. */
const char *http_request_id(const struct http_request *req);

#define HTTP_HEADERS_ADDED 8
/**
 * http_add_header - to the response; @value is copied, @name is a literal. At most
 * HTTP_HEADERS_ADDED. It must not contain line breaks.
 */
void http_add_header(struct http_request *req, const char *name, const char *value);

#define HTTP_TAGS 5
/** http_set_tag - 0 before it is set. */
void http_set_tag(struct http_request *req, unsigned tag, uintptr_t value);
uintptr_t http_tag(const struct http_request *req, unsigned tag);

/** http_set_note - text for on_done; copied. */
void http_set_note(struct http_request *req, const char *text);
const char *http_note(const struct http_request *req); /* NULL: none */

/**
 * http_set_body_quota - charge the body to the quota of @name. Call from on_headers. Each name with
 * bodies in progress has its share of max_bodies_bytes.
 */
void http_set_body_quota(struct http_request *req, const char *name);

/** http_set_gone - call @fn if the client disconnects before the response is complete. */
void http_set_gone(struct http_request *req, void (*fn)(void *ctx), void *ctx);

/* Borrowed for the call, except by http_reply_owned. */
struct http_answer {
	int status;
	const char *content_type;
	const char *body;
	size_t len;
	const struct http_header *headers; /* additional ones; NULL: none */
	size_t headers_count;
};

/** http_reply - the body is copied. */
void http_reply(struct http_request *req, const struct http_answer *answer);
/** http_reply_owned - takes ownership of the body, which must come from malloc. */
void http_reply_owned(struct http_request *req, const struct http_answer *answer);

/*
 * A streamed body of any size. Call from on_headers; on_request is not called. The client's timeout
 * applies to every HTTP_STEP bytes. A response before the end of the body closes the connection.
 */
#define HTTP_STEP 65536

struct http_body_events {
	void *ctx;
	/* Return: bytes taken. After less than all, no more come until http_body_resume. */
	size_t (*on_data)(void *ctx, const char *data, size_t len);
	void (*on_end)(void *ctx);
};
void http_take_body(struct http_request *req, const struct http_body_events *events);
void http_body_resume(struct http_request *req);
/** http_body_length - Content-Length, or HTTP_LENGTH_UNKNOWN. */
#define HTTP_LENGTH_UNKNOWN UINT64_MAX
uint64_t http_body_length(const struct http_request *req);

/*
 * A streamed response with flow control: http_stream_start, then http_stream_write and _end as
 * below. @on_taken reports bytes passed on; a writer that bounds what is outstanding bounds the
 * memory. A client that reads nothing for its timeout is cut off.
 */
struct http_stream_head {
	int status;
	const char *content_type;
	const struct http_header *headers;
	size_t headers_count;
	uint64_t length; /* exact number of bytes; HTTP_LENGTH_UNKNOWN: chunked */
	void (*on_taken)(void *ctx, size_t bytes); /* from the loop */
	void *ctx;
};
void http_stream_start(struct http_request *req, const struct http_stream_head *head);
/**
 * http_stream_abort - the rest cannot be produced: cut the connection, so that no client takes the
 * part for the whole. The server has the request again.
 */
void http_stream_abort(struct http_request *req);

/* Chunked: begin, write ..., end. Pieces are kept until sent. */
void http_stream_begin(struct http_request *req, int status, const char *content_type);
/**
 * http_stream_write - copies. Return: 0, or -ENOBUFS with the connection cut: more than 16 MiB
 * wait, or it is among the slowest and others need the room.
 */
int http_stream_write(struct http_request *req, const char *data, size_t len) attr_must_check;
void http_stream_end(struct http_request *req);

/**
 * http_cut_others - cut connections of @req's server whose request is with a handler, or became
 * a WebSocket, and matches @fn; never @req's own.
 */
void http_cut_others(const struct http_request *req,
                     bool (*fn)(void *ctx, const struct http_request *other), void *ctx);
/** http_server_cut - the same for all connections, not called by a handler. */
void http_server_cut(struct http_server *s, bool (*fn)(void *ctx, const struct http_request *req),
                     void *ctx);
