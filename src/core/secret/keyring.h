/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the keys that encrypt secrets in the store. A key file has one key per line, 64 hexadecimal
 * digits. The first encrypts; the others only decrypt what was written before them, until
 * secrets_load has encrypted it anew.
 *
 * Encryption is XChaCha20-Poly1305. What a value belongs to is authenticated with it, so that a row
 * cannot pass for another. Keys are in locked memory, which core dumps leave out.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYRING_MAX      8
#define KEYRING_NAME_LEN 17 /* 16 hexadecimal digits of the key's hash, and NUL */
#define KEYRING_FILE     "secrets.key"
#define KEYRING_MORE     40 /* bytes that sealing adds */

struct keyring;

/* What a sealed value belongs to. */
struct keyring_label {
	const char *kind, *tenant, *name;
};

void keyring_free(struct keyring *k);
/** keyring_new - empty, after sodium_init. */
struct keyring *keyring_new(void) attr_owned(keyring_free);
/** keyring_read - the operator's file. ERR_CONFIG names it and the line. */
int keyring_read(struct keyring *k, const char *path, struct error *err) attr_must_check;
/** keyring_open - the file in the state directory @dir; created if missing. */
int keyring_open(struct keyring *k, const char *dir, struct error *err) attr_must_check;
/** keyring_make - a key that no file has. */
void keyring_make(struct keyring *k);
size_t keyring_count(const struct keyring *k);
/** keyring_settle - nothing is encrypted with older keys: drop them, also from a file of
 * keyring_open. */
int keyring_settle(struct keyring *k, struct error *err) attr_must_check;
/**
 * keyring_rotate - put a new key before those of the file in @dir. A daemon that runs does not
 * notice; the next one encrypts all secrets anew.
 */
int keyring_rotate(const char *dir, struct error *err) attr_must_check;

/** keyring_name - of the key that encrypts. */
const char *keyring_name(const struct keyring *k);
/** keyring_seal - append nonce and encrypted @data to @to. */
int keyring_seal(const struct keyring *k, const struct keyring_label *label, const void *data,
                 size_t len, struct buf *to) attr_must_check;
/**
 * keyring_unseal - append the plain value to @to, whose owner wipes it. Return: 0, -ENOKEY (no such
 * key), -EBADMSG (damaged, or of another label).
 */
int keyring_unseal(const struct keyring *k, const char *name, const struct keyring_label *label,
                   const struct buf *sealed, struct buf *to) attr_must_check;
