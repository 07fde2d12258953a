/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a JSON object with a signature:
 *
 *   {"format": F, "key_id": K, "payload": P, "signature": S}
 *
 * S is Ed25519, in base64, over the bytes of F, a newline, and the canonical form of P: members
 * sorted by the bytes of their names, no white space, integers only, text in UTF-8 of printable
 * characters. For such values this is RFC 8785. F separates the purposes of a key: what was signed
 * as one format never verifies as another. K names the public key; it is a hint, not a proof.
 *
 * Pure, except seal_key_load.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>

#define SEAL_PUBLIC_LEN  32
#define SEAL_SECRET_LEN  64
#define SEAL_ID_LEN      16 /* hex digits of the SHA-256 of the public key */
#define SEAL_PUBLIC_TEXT 44 /* base64 */

struct seal_key {
	unsigned char public[SEAL_PUBLIC_LEN];
	unsigned char secret[SEAL_SECRET_LEN];
};

/**
 * seal_key_load - from file @name in @dir, made with mode 0600 if it is missing. @dir NULL: a key
 * for this process only.
 */
int seal_key_load(const char *dir, const char *name, struct seal_key *ret_key,
                  struct error *err) attr_must_check;
void seal_key_done(struct seal_key *key);
void seal_key_id(const unsigned char public[SEAL_PUBLIC_LEN], char ret_id[SEAL_ID_LEN + 1]);
void seal_public_print(const unsigned char public[SEAL_PUBLIC_LEN],
                       char ret_text[SEAL_PUBLIC_TEXT + 1]);
/** seal_public_parse - Return: 0 or -EINVAL. */
int seal_public_parse(const char *text, unsigned char ret_public[SEAL_PUBLIC_LEN]) attr_must_check;

/** seal_make - takes @payload, which is canonical. Return: owned. */
json_t *seal_make(const struct seal_key *key, const char *format, json_t *payload) attr_must_check;
/**
 * seal_check - that @sealed has this format and a signature of @public over its payload. Return:
 * the payload, borrowed; or NULL with *err (ERR_INVALID).
 */
const json_t *seal_check(const json_t *sealed, const char *format,
                         const unsigned char public[SEAL_PUBLIC_LEN],
                         struct error *err) attr_must_check;
