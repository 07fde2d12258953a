/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the head of an HTTP/1.1 request to the proxy, and the framing of its body. Stricter than RFC
 * 9112: what two parsers could read in two ways is an error. Pure.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "egress/target.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_MAX        32768 /* request line and headers */
#define HEAD_FIELDS     128
#define HEAD_CONNECTION 32 /* names in Connection */
#define HEAD_METHOD_MAX 20

struct head_field {
	const char *name, *value; /* into the input; not terminated */
	size_t name_len, value_len;
};

struct head {
	bool is_connect;
	bool is_inside; /* a tunnel */
	bool is_http10;
	char method[HEAD_METHOD_MAX + 1];
	struct target target;
	const char *
		path; /* origin form, "/...", into the input; "/" for an empty one; CONNECT: NULL */
	size_t path_len;
	struct head_field fields[HEAD_FIELDS];
	size_t field_count;
	bool chunked;
	bool has_length;
	uint64_t length; /* of the body; 0 if none or chunked */
	size_t size;     /* of the head in bytes */
	bool is_judged;  /* set by the caller: rules look at method and path */
};

/**
 * head_parse - Return: 1 with *ret filled, 0 if more bytes are needed, -1. HEAD_MAX bytes never
 * need more.
 *
 * @inside: NULL, or the target of a tunnel that ends here: then METHOD /path (origin form) with its
 * Host is accepted instead, and the port of the scheme is 443.
 *
 * Accepted: CONNECT host:port (authority form; a Host, if any, must equal it; its port may be
 * missing), and METHOD http://host[:port]/path (absolute form). HTTP/1.1 or 1.0. Errors: any other
 * form or scheme, user information or a fragment in the URL, bytes of the path outside of visible
 * ASCII, a method that is not [A-Z-]{1,20}, or is TRACE or TRACK, which send the request back with
 * the secrets that were added to it; lines not ended by CRLF, NUL or control bytes, a folded line,
 * space before a colon, a missing (HTTP/1.1), empty or repeated Host, a Host that differs from the
 * target, Content-Length repeated, not decimal or beside Transfer-Encoding, a Transfer-Encoding
 * other than "chunked", HTTP/1.0 with Transfer-Encoding, a body on CONNECT, Upgrade other than h2c
 * (which clients offer unasked, and which is dropped), a Connection that names Host or a field of
 * the framing, more than HEAD_MAX bytes or HEAD_FIELDS fields.
 */
int head_parse(const char *data, size_t len, const struct target *inside, struct head *ret,
               struct error *err) attr_must_check;

/* Changes the fields of a request while it is written. */
struct head_edit {
	const void *ctx;
	/* Return: 1: written or dropped by it, 0: the field passes as it is, or -ENOBUFS. */
	int (*field)(const void *ctx, const struct head_field *field, struct buf *to);
	/* Writes more fields. Return: 0 or -ENOBUFS. */
	int (*end)(const void *ctx, struct buf *to);
};

/**
 * head_write_origin - the request as the server gets it: origin form, Host and the length of the
 * body made from what was parsed, "Connection: close", without hop-by-hop fields (Connection and
 * the ones it names, Proxy-*, Keep-Alive, TE, Trailer, Upgrade), and, if it is judged, without
 * fields that some servers take for method or path. @edit: NULL: none. Not for
 * CONNECT. Return: 0 or -ENOBUFS.
 */
int head_write_origin(const struct head *head, const struct head_edit *edit,
                      struct buf *to) attr_must_check;

/* The framing of a chunked body, checked while it passes: strict hexadecimal sizes, CRLF, no
 * extensions, no trailers. All zero: at its start. */
struct chunks {
	uint8_t state;
	uint8_t digits; /* of the size */
	uint64_t left;
};

/** chunks_feed - Return: how many of @len bytes belong to the body, with *ret_done set at its end;
 * -1: malformed, now and for all that follows. */
int64_t chunks_feed(struct chunks *c, const char *data, size_t len, bool *ret_done) attr_must_check;
