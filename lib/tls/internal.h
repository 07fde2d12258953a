/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by authority.c and session.c. */

#include "tls/authority.h"
#include "tls/session.h"
#include <gnutls/gnutls.h>
#include <stdint.h>

/* GnuTLS does not count who uses credentials. */
struct tls_leaf {
	unsigned refs;
	char *host;
	uint64_t made_us;
	gnutls_certificate_credentials_t credentials;
};

/** tls_fail - with the text of GnuTLS. Return: -1. */
int tls_fail(struct error *err, const char *what, int code);
