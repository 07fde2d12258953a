/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include <gnutls/gnutls.h>
#include <string.h>

/*
 * Theory of operation. microhttpd does TLS with GnuTLS. This file explains what is wrong with files
 * before microhttpd rejects them silently, and sends the responses that it does not accept.
 */

int http_tls_check(const struct http_tls *tls, struct error *err)
{
	gnutls_certificate_credentials_t credentials = NULL;
	gnutls_datum_t cert = {(unsigned char *)(uintptr_t)tls->cert, (unsigned)strlen(tls->cert)};
	gnutls_datum_t key = {(unsigned char *)(uintptr_t)tls->key, (unsigned)strlen(tls->key)};
	int r = gnutls_certificate_allocate_credentials(&credentials);

	if (r == GNUTLS_E_SUCCESS)
		r = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key,
		                                        GNUTLS_X509_FMT_PEM);
	if (credentials)
		gnutls_certificate_free_credentials(credentials);
	if (r < 0)
		return error_set(err, ERR_CONFIG, 0, "tls.cert and tls.key: %s",
		                 gnutls_strerror(r));
	return 0;
}

/* NULL: none yet. */
static gnutls_session_t session_of(const struct http_conn *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	return info ? info->tls_session : NULL;
}

bool tls_is_ready(const struct http_conn *c)
{
	gnutls_session_t session = c->listener->is_tls ? session_of(c) : NULL;
	/* GnuTLS has no function that only asks: this text exists after a handshake. */
	char *text = session ? gnutls_session_get_desc(session) : NULL;
	bool is_ready = text;

	gnutls_free(text);
	return is_ready || !c->listener->is_tls;
}

void tls_send(struct http_conn *c, const void *data, size_t len)
{
	gnutls_session_t session = session_of(c);

	if (!session)
		return;
	/* What does not fit is lost, as is the connection. */
	(void)gnutls_record_send(session, data, len);
	(void)gnutls_bye(session, GNUTLS_SHUT_WR);
}
