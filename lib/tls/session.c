/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/internal.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

#define PRIORITY    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define RECORD_MAX  16384
#define REASON_SIZE 160

struct tls_trust {
	gnutls_certificate_credentials_t credentials;
};

struct tls_session {
	int fd;
	gnutls_session_t tls;
	struct tls_leaf *leaf; /* a reference; NULL: a client */
	struct buf early;      /* received before the session began */
	bool is_cut;
	ssize_t last; /* what ended the latest call after some bytes; 0: nothing did */
	bool is_over; /* @last is the end */
};

void tls_trust_free(struct tls_trust *t)
{
	if (!t)
		return;
	if (t->credentials)
		gnutls_certificate_free_credentials(t->credentials);
	free(t);
}

struct tls_trust *tls_trust_new(const char *file, struct error *err)
{
	struct tls_trust *t = NEW(struct tls_trust);
	int r = gnutls_certificate_allocate_credentials(&t->credentials);

	if (r >= 0)
		r = gnutls_certificate_set_x509_trust_file(t->credentials, file,
		                                           GNUTLS_X509_FMT_PEM);
	if (r > 0)
		return t;
	if (r == 0)
		(void)error_set(err, ERR_CONFIG, 0, "%s has no certificate", file);
	else
		(void)tls_fail(err, file, r);
	tls_trust_free(t);
	return NULL;
}

static ssize_t pull(gnutls_transport_ptr_t ctx, void *data, size_t len)
{
	struct tls_session *s = ctx;
	size_t some = s->early.len < len ? s->early.len : len;
	ssize_t n;

	if (some > 0) {
		memcpy(data, s->early.data, some);
		buf_consume(&s->early, some);
		if (s->early.len == 0)
			buf_done(&s->early);
		return (ssize_t)some;
	}
	n = recv(s->fd, data, len, MSG_DONTWAIT);
	if (n < 0)
		gnutls_transport_set_errno(s->tls, errno);
	return n;
}

static ssize_t push(gnutls_transport_ptr_t ctx, const void *data, size_t len)
{
	struct tls_session *s = ctx;
	ssize_t n = send(s->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		gnutls_transport_set_errno(s->tls, errno);
	return n;
}

/* gnutls waits with it only if it was given a time. */
static int has_bytes(gnutls_transport_ptr_t ctx attr_unused, unsigned ms attr_unused)
{
	return 1;
}

void tls_session_free(struct tls_session *s)
{
	if (!s)
		return;
	if (s->tls)
		gnutls_deinit(s->tls);
	tls_leaf_unref(s->leaf);
	buf_done(&s->early);
	free(s);
}

static int open_session(struct tls_session *s, unsigned flags,
                        gnutls_certificate_credentials_t credentials)
{
	gnutls_datum_t protocol = {(unsigned char *)(uintptr_t) "http/1.1", 8};
	int r = gnutls_init(&s->tls,
	                    flags | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);

	if (r >= 0)
		r = gnutls_priority_set_direct(s->tls, PRIORITY, NULL);
	if (r >= 0)
		r = gnutls_credentials_set(s->tls, GNUTLS_CRD_CERTIFICATE, credentials);
	if (r >= 0)
		r = gnutls_alpn_set_protocols(s->tls, &protocol, 1, 0);
	if (r < 0)
		return r;
	gnutls_transport_set_ptr(s->tls, s);
	gnutls_transport_set_pull_function(s->tls, pull);
	gnutls_transport_set_push_function(s->tls, push);
	gnutls_transport_set_pull_timeout_function(s->tls, has_bytes);
	return 0;
}

struct tls_session *tls_session_serve(int fd, struct tls_leaf *leaf, struct buf *early,
                                      struct error *err)
{
	struct tls_session *s = NEW(struct tls_session);
	int r;

	*s = (struct tls_session){.fd = fd, .leaf = leaf, .early = *early};
	*early = BUF_INIT(early->max);
	leaf->refs++;
	r = open_session(s, GNUTLS_SERVER, leaf->credentials);
	if (r >= 0)
		return s;
	(void)tls_fail(err, "TLS", r);
	tls_session_free(s);
	return NULL;
}

struct tls_session *tls_session_connect(int fd, const char *host, struct tls_trust *trust,
                                        struct error *err)
{
	struct tls_session *s = NEW(struct tls_session);
	int r;

	*s = (struct tls_session){.fd = fd};
	r = open_session(s, GNUTLS_CLIENT, trust->credentials);
	if (r >= 0)
		r = gnutls_server_name_set(s->tls, GNUTLS_NAME_DNS, host, strlen(host));
	if (r >= 0) {
		gnutls_session_set_verify_cert(s->tls, host, 0);
		return s;
	}
	(void)tls_fail(err, "TLS", r);
	tls_session_free(s);
	return NULL;
}

static int fail_handshake(const struct tls_session *s, int code, struct error *err)
{
	gnutls_datum_t text = {NULL, 0};
	char why[REASON_SIZE] = "";

	if (code != GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
		return error_set(err, ERR_UNTRUSTED, 0, "%s",
		                 code == GNUTLS_E_PREMATURE_TERMINATION
		                         ? "the peer ended the handshake"
		                         : gnutls_strerror(code));
	if (gnutls_certificate_verification_status_print(
		    gnutls_session_get_verify_cert_status(s->tls), GNUTLS_CRT_X509, &text, 0) >= 0)
		(void)snprintf(why, sizeof(why), "%.*s", (int)text.size, text.data);
	gnutls_free(text.data);
	return error_set(err, ERR_UNTRUSTED, 0, "%s", why);
}

int tls_session_handshake(struct tls_session *s, struct error *err)
{
	int r;

	do
		r = gnutls_handshake(s->tls);
	while (r < 0 && r != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(r));
	if (r == GNUTLS_E_AGAIN)
		return 0;
	return r < 0 ? fail_handshake(s, r, err) : 1;
}

bool tls_session_wants_write(const struct tls_session *s)
{
	return gnutls_record_get_direction(s->tls) == 1;
}

static int errno_of(int code)
{
	return code == GNUTLS_E_AGAIN ? -EAGAIN : -EPROTO;
}

/* Return: as gnutls_record_recv; what ended the session ends it for all calls. */
static ssize_t receive(struct tls_session *s, char *data, size_t len)
{
	ssize_t n;

	if (s->is_over)
		return s->last;
	do
		n = gnutls_record_recv(s->tls, data, len);
	while (n == GNUTLS_E_INTERRUPTED);
	if (n > 0 || n == GNUTLS_E_AGAIN)
		return n;
	s->is_over = true;
	s->is_cut = n == GNUTLS_E_PREMATURE_TERMINATION;
	s->last = s->is_cut ? 0 : n;
	return s->last;
}

ssize_t tls_session_recv(struct tls_session *s, void *data, size_t len)
{
	size_t got = 0;
	ssize_t n = 1;

	while (got < len && n > 0) {
		n = receive(s, (char *)data + got, len - got);
		got += n > 0 ? (size_t)n : 0;
	}
	if (got > 0 || n >= 0)
		return (ssize_t)got;
	return errno_of((int)n);
}

ssize_t tls_session_send(struct tls_session *s, const void *data, size_t len)
{
	size_t sent = 0;

	while (sent < len) {
		size_t some = len - sent < RECORD_MAX ? len - sent : RECORD_MAX;
		ssize_t n = gnutls_record_send(s->tls, (const char *)data + sent, some);

		if (n == GNUTLS_E_INTERRUPTED)
			continue;
		if (n < 0)
			return sent > 0 ? (ssize_t)sent : errno_of((int)n);
		sent += (size_t)n;
	}
	return (ssize_t)sent;
}

int tls_session_end(struct tls_session *s)
{
	int r;

	do
		r = gnutls_bye(s->tls, GNUTLS_SHUT_WR);
	while (r == GNUTLS_E_INTERRUPTED);
	return r < 0 ? errno_of(r) : 0;
}

bool tls_session_has_more(const struct tls_session *s)
{
	return s->early.len > 0 || gnutls_record_check_pending(s->tls) > 0;
}

bool tls_session_was_cut(const struct tls_session *s)
{
	return s->is_cut;
}
