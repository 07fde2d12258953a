/* SPDX-License-Identifier: Apache-2.0 */
#include "seal/seal.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "json/json_dump.h"

#define SIGNATURE_TEXT 88 /* base64 of 64 bytes */
#define BASE64         sodium_base64_VARIANT_ORIGINAL
#define MEMBERS        4
#define DEPTH_MAX      16

static_assert(SEAL_PUBLIC_LEN == crypto_sign_PUBLICKEYBYTES, "a public key fits");
static_assert(SEAL_SECRET_LEN == crypto_sign_SECRETKEYBYTES, "a secret key fits");
static_assert(SIGNATURE_TEXT + 1 == sodium_base64_ENCODED_LEN(crypto_sign_BYTES, BASE64), "padded");
static_assert(SEAL_PUBLIC_TEXT + 1 == sodium_base64_ENCODED_LEN(SEAL_PUBLIC_LEN, BASE64), "padded");

void seal_key_done(struct seal_key *key)
{
	sodium_memzero(key, sizeof(*key));
}

void seal_key_id(const unsigned char public[SEAL_PUBLIC_LEN], char ret_id[SEAL_ID_LEN + 1])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(hash, public, SEAL_PUBLIC_LEN); /* cannot fail */
	(void)sodium_bin2hex(ret_id, SEAL_ID_LEN + 1, hash, SEAL_ID_LEN / 2);
}

void seal_public_print(const unsigned char public[SEAL_PUBLIC_LEN],
                       char ret_text[SEAL_PUBLIC_TEXT + 1])
{
	(void)sodium_bin2base64(ret_text, SEAL_PUBLIC_TEXT + 1, public, SEAL_PUBLIC_LEN, BASE64);
}

static int decode(const char *text, unsigned char *ret, size_t len)
{
	size_t n = 0;
	const char *end = NULL;

	if (!text || sodium_base642bin(ret, len, text, strlen(text), NULL, &n, &end, BASE64) < 0)
		return -EINVAL;
	return n == len && *end == '\0' ? 0 : -EINVAL;
}

int seal_public_parse(const char *text, unsigned char ret_public[SEAL_PUBLIC_LEN])
{
	return decode(text, ret_public, SEAL_PUBLIC_LEN);
}

static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return true;
}

// NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX bounds it
static bool is_canonical(const json_t *j, int depth)
{
	const json_t *item;
	const char *key;
	size_t i;

	if (depth > DEPTH_MAX || json_is_real(j))
		return false;
	if (json_is_string(j))
		return is_plain(json_string_value(j), json_string_length(j));
	json_array_foreach (j, i, item)
		if (!is_canonical(item, depth + 1))
			return false;
	json_object_foreach ((json_t *)(uintptr_t)j, key, item)
		if (!is_plain(key, strlen(key)) || !is_canonical(item, depth + 1))
			return false;
	return true;
}

/* What is signed. Return: owned; NULL: the payload has no canonical form. */
static char *message_of(const char *format, const json_t *payload)
{
	char *canonical, *message;

	if (!json_is_object(payload) || !is_canonical(payload, 0))
		return NULL;
	canonical = json_dump_text(payload, JSON_COMPACT | JSON_SORT_KEYS);
	assert(canonical);
	message = xasprintf("%s\n%s", format, canonical);
	free(canonical);
	return message;
}

json_t *seal_make(const struct seal_key *key, const char *format, json_t *payload)
{
	cleanup_free char *message = message_of(format, payload);
	unsigned char signature[crypto_sign_BYTES];
	char text[SIGNATURE_TEXT + 1], id[SEAL_ID_LEN + 1];
	json_t *sealed;

	assert(message); /* payloads are ours */
	(void)crypto_sign_detached(signature, NULL, (const unsigned char *)message, strlen(message),
	                           key->secret); /* cannot fail */
	(void)sodium_bin2base64(text, sizeof(text), signature, sizeof(signature), BASE64);
	seal_key_id(key->public, id);
	sealed = json_pack("{s:s, s:s, s:o, s:s}", "format", format, "key_id", id, "payload",
	                   payload, "signature", text);
	assert(sealed);
	return sealed;
}

/* Return: NULL: no such text, or with a NUL, behind which a reader may see more. */
static const char *text_of(const json_t *sealed, const char *key)
{
	const json_t *own = json_object_get(sealed, key);
	const char *text = json_string_value(own);

	return text && strlen(text) == json_string_length(own) ? text : NULL;
}

static bool has_format(const json_t *sealed, const char *format)
{
	const char *own = text_of(sealed, "format");

	return own && str_equal(own, format);
}

const json_t *seal_check(const json_t *sealed, const char *format,
                         const unsigned char public[SEAL_PUBLIC_LEN], struct error *err)
{
	const json_t *payload = json_object_get(sealed, "payload");
	const char *text = text_of(sealed, "signature");
	const char *id = text_of(sealed, "key_id");
	cleanup_free char *message = message_of(format, payload);
	unsigned char signature[crypto_sign_BYTES];
	char own[SEAL_ID_LEN + 1];

	/* A member that is not signed could mislead a reader. */
	if (!has_format(sealed, format) || !message || json_object_size(sealed) != MEMBERS || !id) {
		(void)error_set(err, ERR_INVALID, 0, "not a sealed object of format %s", format);
		return NULL;
	}
	seal_key_id(public, own);
	if (!str_equal(own, id)) {
		(void)error_set(err, ERR_INVALID, 0, "signed with key %.16s, not with %s", id, own);
		return NULL;
	}
	if (decode(text, signature, sizeof(signature)) < 0 ||
	    crypto_sign_verify_detached(signature, (const unsigned char *)message, strlen(message),
	                                public) < 0) {
		(void)error_set(err, ERR_INVALID, 0, "the signature does not match the contents");
		return NULL;
	}
	return payload;
}
