/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/internal.h"

#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

#define SERIAL_LEN  16
#define DAY_S       (24 * 3600L)
#define CA_DAYS     3650
#define LEAF_DAYS   30
#define LEAF_MAX_US (24 * 3600 * USEC_PER_SEC)
/* Code can make the proxy issue certificates only for hosts of its secrets. */
#define LEAVES_MAX 256
#define ID_MAX     64

struct authority {
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t cert;
	gnutls_x509_privkey_t leaf_key;      /* of all leaves, new in each process */
	struct tls_leaf *leaves[LEAVES_MAX]; /* references; NULL: none yet */
	size_t next;                         /* to be replaced */
};

int tls_fail(struct error *err, const char *what, int code)
{
	return error_set(err, ERR_SYSTEM, 0, "%s: %s", what, gnutls_strerror(code));
}

static int make_key(gnutls_x509_privkey_t *ret_key)
{
	int r = gnutls_x509_privkey_init(ret_key);

	return r < 0 ? r
	             : gnutls_x509_privkey_generate(
			       *ret_key, GNUTLS_PK_ECDSA,
			       GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

/* What certificates of an authority and of a host have in common. */
static int fill_common(gnutls_x509_crt_t cert, gnutls_x509_privkey_t key, const char *name,
                       long days)
{
	unsigned char serial[SERIAL_LEN], id[ID_MAX];
	size_t id_len = sizeof(id);
	time_t now = (time_t)(clock_real_ms() / 1000);
	int r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, of this length */
	if (r >= 0)
		r = gnutls_x509_crt_set_version(cert, 3);
	if (r >= 0)
		r = gnutls_x509_crt_set_serial(cert, serial, sizeof(serial));
	/* The clock of a box may differ a little. */
	if (r >= 0)
		r = gnutls_x509_crt_set_activation_time(cert, now - DAY_S);
	if (r >= 0)
		r = gnutls_x509_crt_set_expiration_time(cert, now + days * DAY_S);
	if (r >= 0)
		r = gnutls_x509_crt_set_key(cert, key);
	if (r >= 0)
		r = gnutls_x509_crt_set_dn_by_oid(cert, GNUTLS_OID_X520_COMMON_NAME, 0, name,
		                                  (unsigned)strlen(name));
	if (r >= 0)
		r = gnutls_x509_crt_get_key_id(cert, 0, id, &id_len);
	return r < 0 ? r : gnutls_x509_crt_set_subject_key_id(cert, id, id_len);
}

static int copy_datum(gnutls_datum_t *from, struct buf *to)
{
	int r = buf_add(to, from->data, from->size);

	explicit_bzero(from->data, from->size);
	gnutls_free(from->data);
	return r < 0 ? GNUTLS_E_MEMORY_ERROR : 0;
}

static int export_both(gnutls_x509_privkey_t key, gnutls_x509_crt_t cert, struct buf *ret_key,
                       struct buf *ret_cert)
{
	gnutls_datum_t out = {NULL, 0};
	int r = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_DER, &out);

	if (r >= 0)
		r = copy_datum(&out, ret_key);
	if (r >= 0)
		r = gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_DER, &out);
	return r < 0 ? r : copy_datum(&out, ret_cert);
}

int authority_make(const char *name, struct buf *ret_key, struct buf *ret_cert, struct error *err)
{
	gnutls_x509_privkey_t key = NULL;
	gnutls_x509_crt_t cert = NULL;
	int r = make_key(&key);

	if (r >= 0)
		r = gnutls_x509_crt_init(&cert);
	if (r >= 0)
		r = fill_common(cert, key, name, CA_DAYS);
	if (r >= 0)
		r = gnutls_x509_crt_set_basic_constraints(cert, 1, 0);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_usage(cert,
		                                  GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
	if (r >= 0)
		r = gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0);
	if (r >= 0)
		r = export_both(key, cert, ret_key, ret_cert);
	if (cert)
		gnutls_x509_crt_deinit(cert);
	if (key)
		gnutls_x509_privkey_deinit(key);
	return r < 0 ? tls_fail(err, "make a certificate authority", r) : 0;
}

char *authority_pem(const struct buf *cert)
{
	const gnutls_datum_t in = {(unsigned char *)cert->data, (unsigned)cert->len};
	gnutls_datum_t out = {NULL, 0};
	gnutls_x509_crt_t parsed = NULL;
	char *text = NULL;

	if (gnutls_x509_crt_init(&parsed) < 0)
		return NULL;
	if (gnutls_x509_crt_import(parsed, &in, GNUTLS_X509_FMT_DER) >= 0 &&
	    gnutls_x509_crt_export2(parsed, GNUTLS_X509_FMT_PEM, &out) >= 0)
		text = xstrndup((const char *)out.data, out.size);
	gnutls_free(out.data);
	gnutls_x509_crt_deinit(parsed);
	return text;
}

static int import_both(struct authority *a, const gnutls_datum_t *key, const gnutls_datum_t *cert)
{
	int r = gnutls_x509_privkey_init(&a->key);

	if (r >= 0)
		r = gnutls_x509_privkey_import(a->key, key, GNUTLS_X509_FMT_DER);
	if (r >= 0)
		r = gnutls_x509_crt_init(&a->cert);
	if (r >= 0)
		r = gnutls_x509_crt_import(a->cert, cert, GNUTLS_X509_FMT_DER);
	return r < 0 ? r : make_key(&a->leaf_key);
}

struct authority *authority_new(const void *key, size_t key_len, const void *cert, size_t cert_len,
                                struct error *err)
{
	const gnutls_datum_t key_in = {(unsigned char *)(uintptr_t)key, (unsigned)key_len};
	const gnutls_datum_t cert_in = {(unsigned char *)(uintptr_t)cert, (unsigned)cert_len};
	struct authority *a = NEW(struct authority);
	int r;

	r = import_both(a, &key_in, &cert_in);
	if (r >= 0)
		return a;
	(void)tls_fail(err, "read the certificate authority", r);
	authority_free(a);
	return NULL;
}

void authority_free(struct authority *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < LEAVES_MAX; i++)
		tls_leaf_unref(a->leaves[i]);
	if (a->leaf_key)
		gnutls_x509_privkey_deinit(a->leaf_key);
	if (a->cert)
		gnutls_x509_crt_deinit(a->cert);
	if (a->key)
		gnutls_x509_privkey_deinit(a->key);
	free(a);
}

void tls_leaf_unref(struct tls_leaf *leaf)
{
	if (!leaf || --leaf->refs > 0)
		return;
	if (leaf->credentials)
		gnutls_certificate_free_credentials(leaf->credentials);
	free(leaf->host);
	free(leaf);
}

static int sign_leaf(const struct authority *a, gnutls_x509_crt_t cert, const char *host)
{
	unsigned char id[ID_MAX];
	size_t id_len = sizeof(id);
	/* A common name is at most 64 characters long, and clients do not look at it. */
	int r = fill_common(cert, a->leaf_key, "Millibox", LEAF_DAYS);

	if (r >= 0)
		r = gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, host,
		                                         (unsigned)strlen(host), GNUTLS_FSAN_SET);
	if (r >= 0)
		r = gnutls_x509_crt_set_basic_constraints(cert, 0, -1);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_usage(cert, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_purpose_oid(cert, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (r >= 0)
		r = gnutls_x509_crt_get_subject_key_id(a->cert, id, &id_len, NULL);
	if (r >= 0)
		r = gnutls_x509_crt_set_authority_key_id(cert, id, id_len);
	return r < 0 ? r : gnutls_x509_crt_sign2(cert, a->cert, a->key, GNUTLS_DIG_SHA256, 0);
}

static int make_credentials(const struct authority *a, struct tls_leaf *leaf)
{
	gnutls_x509_crt_t cert = NULL;
	int r = gnutls_x509_crt_init(&cert);

	if (r >= 0)
		r = sign_leaf(a, cert, leaf->host);
	if (r >= 0)
		r = gnutls_certificate_allocate_credentials(&leaf->credentials);
	if (r >= 0)
		r = gnutls_certificate_set_x509_key(leaf->credentials, &cert, 1, a->leaf_key);
	if (cert)
		gnutls_x509_crt_deinit(cert);
	return r;
}

/* Return: where it is, or where it would be. */
static size_t find_leaf(struct authority *a, const char *host)
{
	for (size_t i = 0; i < LEAVES_MAX && a->leaves[i]; i++)
		if (str_equal(a->leaves[i]->host, host))
			return i;
	return a->next++ % LEAVES_MAX;
}

static bool is_fresh(const struct tls_leaf *leaf, const char *host)
{
	return leaf && str_equal(leaf->host, host) && clock_us() - leaf->made_us < LEAF_MAX_US;
}

struct tls_leaf *authority_leaf(struct authority *a, const char *host, struct error *err)
{
	size_t at = find_leaf(a, host);
	struct tls_leaf *leaf = a->leaves[at];
	int r;

	if (!is_fresh(leaf, host)) {
		leaf = NEW(struct tls_leaf);
		leaf->refs = 1;
		leaf->host = xstrdup(host);
		leaf->made_us = clock_us();
		r = make_credentials(a, leaf);
		if (r < 0) {
			(void)tls_fail(err, "issue a certificate", r);
			tls_leaf_unref(leaf);
			return NULL;
		}
		tls_leaf_unref(a->leaves[at]);
		a->leaves[at] = leaf;
	}
	leaf->refs++;
	return leaf;
}
