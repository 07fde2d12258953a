/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: one end of a TLS connection (1.2 or 1.3, HTTP/1.1 by ALPN) on a non-blocking socket, which
 * the caller owns and watches.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_leaf;
struct tls_session;
struct tls_trust;

void tls_trust_free(struct tls_trust *t);
/** tls_trust_new - the authorities in @file (PEM). */
struct tls_trust *tls_trust_new(const char *file, struct error *err) attr_must_check;

void tls_session_free(struct tls_session *s);
/**
 * tls_session_serve - be the server of @fd with the certificate @leaf, which is referenced. @early:
 * what was already received of the connection; taken.
 */
struct tls_session *tls_session_serve(int fd, struct tls_leaf *leaf, struct buf *early,
                                      struct error *err) attr_must_check;
/** tls_session_connect - be the client; the server must prove to be @host to @trust, which must
 * outlive the session. */
struct tls_session *tls_session_connect(int fd, const char *host, struct tls_trust *trust,
                                        struct error *err) attr_must_check;
/** tls_session_handshake - Return: 1: done, 0: wait for the socket, -1 with *err. */
int tls_session_handshake(struct tls_session *s, struct error *err) attr_must_check;
/** tls_session_wants_write - what tls_session_handshake waits for. */
bool tls_session_wants_write(const struct tls_session *s);

/** tls_session_recv - Return: bytes, 0 at the end, -EAGAIN, or another negative errno. */
ssize_t tls_session_recv(struct tls_session *s, void *data, size_t len) attr_must_check;
/**
 * tls_session_send - Return: bytes, -EAGAIN, or another negative errno. After -EAGAIN, or fewer
 * bytes than @len, the next call must begin with the bytes that were not sent.
 */
ssize_t tls_session_send(struct tls_session *s, const void *data, size_t len) attr_must_check;
/** tls_session_end - tell the peer that nothing follows. Return: 0, -EAGAIN, or another error. */
int tls_session_end(struct tls_session *s) attr_must_check;
/** tls_session_has_more - received and not read: the socket does not show it. */
bool tls_session_has_more(const struct tls_session *s);
/** tls_session_was_cut - the peer ended without saying so: bytes may be missing. */
bool tls_session_was_cut(const struct tls_session *s);
