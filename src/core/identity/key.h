/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: API keys: mb_<id>_<secret>. The id names the key in lists and logs; the secret, 32 of
 * [a-z0-9], is shown once. Only a BLAKE2b hash of both is stored, against readers of the database
 * or a backup.
 *
 * A fast hash is enough: 165 random bits cannot be guessed at any speed, and a slow hash (argon2,
 * scrypt) on every request would let callers keep the daemon busy. Pure, except for key_make.
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

/* Secret: key_wipe it. */
struct key {
	char id[KEY_ID_LEN + 1];
	char secret[KEY_SECRET_LEN + 1];
};

/** key_setup - once, before all other functions. Return: 0 or -ENOSYS. */
int key_setup(void) attr_must_check;
void key_make(struct key *ret_key);
void key_format(const struct key *key, char ret_text[KEY_TEXT_LEN + 1]);
/** key_parse - Return: 0, or -EINVAL. */
int key_parse(const char *text, struct key *ret_key) attr_must_check;
void key_hash(const struct key *key, uint8_t ret_hash[KEY_HASH_LEN]);
/** key_matches - in constant time. */
bool key_matches(const struct key *key, const uint8_t hash[KEY_HASH_LEN]);
void key_wipe(struct key *key);
#define cleanup_key attr_cleanup(key_wipe)

/**
 * key_from_headers - parse "Bearer KEY" in @authorization, or @api_key; NULL: not sent. Return: 1
 * with *ret_key; 0: none sent; -EINVAL: not a key; -EEXIST: both sent, and they differ.
 */
int key_from_headers(const char *authorization, const char *api_key,
                     struct key *ret_key) attr_must_check;
