/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a certificate authority in memory. Its key and certificate are kept by the caller, in DER.
 * Keys are ECDSA on P-256, which every client knows.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

#define AUTHORITY_KEY_MAX  1024 /* bytes in DER */
#define AUTHORITY_CERT_MAX 4096

struct authority;
struct tls_leaf;

/** authority_make - a new key and the certificate of @name; the caller wipes @ret_key. */
int authority_make(const char *name, struct buf *ret_key, struct buf *ret_cert,
                   struct error *err) attr_must_check;
/** authority_pem - a certificate in PEM. Return: owned, or NULL if it is none. */
char *authority_pem(const struct buf *cert) attr_must_check;

void authority_free(struct authority *a);
struct authority *authority_new(const void *key, size_t key_len, const void *cert, size_t cert_len,
                                struct error *err) attr_must_check;
/**
 * authority_leaf - a certificate for @host, made now or before: the latest ones are kept. Return: a
 * reference, or NULL with *err.
 */
struct tls_leaf *authority_leaf(struct authority *a, const char *host, struct error *err);
void tls_leaf_unref(struct tls_leaf *leaf);
