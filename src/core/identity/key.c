/* SPDX-License-Identifier: Apache-2.0 */
#include "core/identity/key.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/str.h"

static_assert(KEY_HASH_LEN == crypto_generichash_BYTES, "the hash is BLAKE2b-256");

int key_setup(void)
{
	return sodium_init() < 0 ? -ENOSYS : 0;
}

void key_make(struct key *ret_key)
{
	id_random(ret_key->id, KEY_ID_LEN);
	id_random(ret_key->secret, KEY_SECRET_LEN);
}

void key_format(const struct key *key, char ret_text[KEY_TEXT_LEN + 1])
{
	(void)!str_format(ret_text, KEY_TEXT_LEN + 1, KEY_PREFIX "%s_%s", key->id, key->secret);
}

static bool is_random(const char *text, size_t len)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") >= len;
}

int key_parse(const char *text, struct key *ret_key)
{
	const char *id, *secret;

	if (strnlen(text, KEY_TEXT_LEN + 1) != KEY_TEXT_LEN || !str_has_prefix(text, KEY_PREFIX))
		return -EINVAL;
	id = text + strlen(KEY_PREFIX);
	secret = id + KEY_ID_LEN + 1;
	if (!is_random(id, KEY_ID_LEN) || id[KEY_ID_LEN] != '_' ||
	    !is_random(secret, KEY_SECRET_LEN))
		return -EINVAL;
	memcpy(ret_key->id, id, KEY_ID_LEN);
	ret_key->id[KEY_ID_LEN] = '\0';
	memcpy(ret_key->secret, secret, KEY_SECRET_LEN + 1);
	return 0;
}

/* The id is hashed too: equal secrets of two keys have different hashes. */
void key_hash(const struct key *key, uint8_t ret_hash[KEY_HASH_LEN])
{
	char text[KEY_TEXT_LEN + 1];

	key_format(key, text);
	/* Cannot fail for these lengths. */
	(void)crypto_generichash(ret_hash, KEY_HASH_LEN, (const uint8_t *)text, KEY_TEXT_LEN, NULL,
	                         0);
	sodium_memzero(text, sizeof(text));
}

bool key_matches(const struct key *key, const uint8_t hash[KEY_HASH_LEN])
{
	uint8_t own[KEY_HASH_LEN];

	key_hash(key, own);
	return sodium_memcmp(own, hash, KEY_HASH_LEN) == 0;
}

void key_wipe(struct key *key)
{
	sodium_memzero(key, sizeof(*key));
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* "Bearer KEY", in any case. */
static int parse_bearer(const char *authorization, struct key *ret_key)
{
	static const char scheme[] = "Bearer";
	const char *s = skip_blanks(authorization);

	if (strncasecmp(s, scheme, strlen(scheme)) != 0)
		return -EINVAL;
	s += strlen(scheme);
	return *s == ' ' || *s == '\t' ? key_parse(skip_blanks(s), ret_key) : -EINVAL;
}

int key_from_headers(const char *authorization, const char *api_key, struct key *ret_key)
{
	cleanup_key struct key one = {0}, other = {0};
	int r = authorization ? parse_bearer(authorization, &one) : 0;
	int q = api_key ? key_parse(skip_blanks(api_key), &other) : 0;

	if (!authorization && !api_key)
		return 0;
	if (authorization && api_key && (r != q || sodium_memcmp(&one, &other, sizeof(one)) != 0))
		return -EEXIST;
	if (r < 0 || q < 0)
		return -EINVAL;
	*ret_key = authorization ? one : other;
	return 1;
}
