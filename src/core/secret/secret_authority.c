/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "core/secret/secret_internal.h"
#include "core/store/store_internal.h"
#include "egress/order.h"
#include "tls/authority.h"

/*
 * Theory of operation. The authority is made with the first secret that has a host with TLS, and
 * kept: boxes of sessions outlive the daemon and the proxy, and go on to trust it. Its key is
 * encrypted like a secret. The proxy has it in memory; no box and no file does.
 */

#define AUTHORITY_NAME "Millibox proxy of this installation"
#define BUNDLE_MAX     (4u << 20)
#define ROW_MAX        65536

static const struct keyring_label label = {"authority", "", ""};

/* The authorities of the host, too: the variables that name this file replace the host's. */
static void make_bundle(struct secrets *s)
{
	struct buf text = BUF_INIT(BUNDLE_MAX);
	cleanup_free char *own = authority_pem(&s->authority.cert);
	size_t len;
	int r = own ? buf_add_str(&text, own) : -EINVAL;

	if (r >= 0 && s->config.ca_file)
		r = file_read_at(AT_FDCWD, s->config.ca_file, &text);
	if (r < 0)
		log_warn("certificates for boxes, %s: %s; such boxes trust only the proxy",
		         s->config.ca_file ? s->config.ca_file : "", strerror(-r));
	s->bundle = buf_take(&text, &len);
}

static struct db_statement put_statement(const struct secret_authority *a,
                                         struct db_value values[4])
{
	values[0] = DB_INT(clock_real_ms());
	values[1] = DB_BYTES(a->cert.data, a->cert.len);
	values[2] = DB_TEXT(a->key);
	values[3] = DB_BYTES(a->sealed.data, a->sealed.len);
	return (struct db_statement){
		"INSERT INTO authority (no, created_ms, certificate, key, sealed)"
		" VALUES (1, ?1, ?2, ?3, ?4) ON CONFLICT (no) DO UPDATE SET"
		" created_ms = ?1, certificate = ?2, key = ?3, sealed = ?4",
		values, 4};
}

static int seal(struct secrets *s, const struct buf *key)
{
	struct secret_authority *a = &s->authority;

	buf_reset(&a->sealed);
	(void)!str_copy(a->key, sizeof(a->key), keyring_name(s->config.keyring));
	return keyring_seal(s->config.keyring, &label, key->data, key->len, &a->sealed);
}

int secret_authority_need(struct secrets *s, struct error *err)
{
	cleanup_secret struct buf key = BUF_INIT(AUTHORITY_KEY_MAX);
	struct secret_authority *a = &s->authority;
	struct db_value values[4];
	struct db_statement put;

	if (a->cert.len > 0)
		return 0;
	if (authority_make(AUTHORITY_NAME, &key, &a->cert, err) < 0)
		return -1;
	if (seal(s, &key) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "encrypt the authority");
	make_bundle(s);
	put = put_statement(a, values);
	/* If this is lost, sessions of now trust another one than the next daemon has. */
	return !s->config.store || db_write(store_db(s->config.store), &put, 1, NULL, NULL, err)
	               ? 0
	               : -1;
}

static int unseal(const struct secrets *s, struct buf *to)
{
	return keyring_unseal(s->config.keyring, s->authority.key, &label, &s->authority.sealed,
	                      to);
}

static int seal_anew(struct secrets *s, const struct buf *key, struct error *err)
{
	struct db_value values[4];
	struct db_statement put;

	if (str_equal(s->authority.key, keyring_name(s->config.keyring)))
		return 0;
	if (seal(s, key) < 0)
		return error_set(err, ERR_SYSTEM, ENOMEM, "encrypt the authority");
	put = put_statement(&s->authority, values);
	return db_exec_now(store_db(s->config.store), &put, 1, err);
}

int secret_authority_load(struct secrets *s, struct error *err)
{
	const struct db_statement query =
		DB_SQL("SELECT certificate, key, sealed FROM authority WHERE no = ?1", DB_INT(1));
	cleanup_secret struct buf key = BUF_INIT(AUTHORITY_KEY_MAX);
	cleanup_db_rows struct db_rows *rows = NULL;
	struct secret_authority *a = &s->authority;
	const char *cert, *sealed;
	size_t cert_len = 0, sealed_len = 0;

	if (db_query_now(store_db(s->config.store), &query, ROW_MAX, &rows, err) < 0)
		return error_wrap(err, "read the authority");
	if (db_rows_count(rows) == 0)
		return 0;
	cert = db_rows_bytes(rows, 0, 0, &cert_len);
	sealed = db_rows_bytes(rows, 0, 2, &sealed_len);
	if (str_copy(a->key, sizeof(a->key), db_rows_text(rows, 0, 1)) < 0 ||
	    buf_add(&a->cert, cert, cert_len) < 0 || buf_add(&a->sealed, sealed, sealed_len) < 0)
		return error_set(err, ERR_CONFIG, 0, "the authority in the store is damaged");
	if (unseal(s, &key) < 0) {
		log_warn("the authority for boxes with secrets cannot be decrypted: its key %s is "
		         "missing; sessions that trust it lose TLS to hosts of secrets",
		         a->key);
		buf_reset(&a->cert);
		return 0;
	}
	make_bundle(s);
	return seal_anew(s, &key, err);
}

int secrets_write_authority(const struct secrets *s, struct buf *to)
{
	const struct secret_authority *a = &s->authority;
	cleanup_secret struct buf key = BUF_INIT(AUTHORITY_KEY_MAX);
	struct egress_authority head = {.cert_len = (uint32_t)a->cert.len};

	if (a->cert.len == 0 || unseal(s, &key) < 0)
		return 0;
	head.key_len = (uint32_t)key.len;
	return buf_add(to, &head, sizeof(head)) == 0 && buf_add(to, key.data, key.len) == 0 &&
	       buf_add(to, a->cert.data, a->cert.len) == 0;
}

void secret_authority_done(struct secrets *s)
{
	buf_done(&s->authority.cert);
	buf_done(&s->authority.sealed);
	free(s->bundle);
}
