/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an API key as text, and what is kept of it: mb_<id>_<secret>. The id names the key in lists
 * and logs; the secret is 32 of [a-z0-9], 165 random bits, and is shown once. Kept is a BLAKE2b
 * hash of both.
 *
 * Why a quick hash is enough: slow ones (argon2, scrypt) make guessing dear where people choose the
 * words. Nobody guesses 165 random bits, whether a guess takes a microsecond or a second, and a
 * slow hash on every request would be a way to keep the daemon busy. What the hash is for is that
 * who reads the database or a backup of it has no keys. Pure, but for the making.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_PREFIX     "mb_"
#define KEY_ID_LEN     12
#define KEY_SECRET_LEN 32
#define KEY_TEXT_LEN   (3 + KEY_ID_LEN + 1 + KEY_SECRET_LEN) /* without the NUL */
#define KEY_HASH_LEN   32

/* A key that was taken apart. It is secret: key_wipe it. */
struct key {
	char id[KEY_ID_LEN + 1];
	char secret[KEY_SECRET_LEN + 1];
};

/** key_setup - once, before anything else of this. Return: 0 or -ENOSYS. */
int key_setup(void) attr_must_check;
/** key_make - a new one. */
void key_make(struct key *ret_key);
void key_format(const struct key *key, char ret_text[KEY_TEXT_LEN + 1]);
/** key_parse - Return: 0, or -EINVAL: no key looks like this. */
int key_parse(const char *text, struct key *ret_key) attr_must_check;
void key_hash(const struct key *key, uint8_t ret_hash[KEY_HASH_LEN]);
/** key_matches - in the same time whatever the answer. */
bool key_matches(const struct key *key, const uint8_t hash[KEY_HASH_LEN]);
/** key_wipe - nothing of it stays in memory. */
void key_wipe(struct key *key);
#define cleanup_key attr_cleanup(key_wipe)

#define KEY_HEADER_MAX 256

/**
 * key_from_headers - the credential of a request: "Bearer KEY" in @authorization, or @api_key;
 * NULL: not sent. Return: 1 with a key in *ret_key; 0: none was sent; -EINVAL: what was sent is no
 * key; -EEXIST: both, and they differ.
 */
int key_from_headers(const char *authorization, const char *api_key,
                     struct key *ret_key) attr_must_check;
