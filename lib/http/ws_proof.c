/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_proof.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"

/*
 * SHA-1 is here and not in base, because nothing but this protocol may use it: it is broken where a
 * digest must resist an attacker. The command line and libmillibox link no library that has it.
 */

#define MAGIC     "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_MAX   64
#define BLOCK_LEN 64
#define SHA1_LEN  20
#define WORDS     5

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static void expand_block(const uint8_t *block, uint32_t w[80])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

/* The function and the constant of round @i (FIPS 180-4, 4.1.1 and 4.2.1). */
static uint32_t mix_words(const uint32_t s[WORDS], size_t i)
{
	if (i < 20)
		return ((s[1] & s[2]) ^ (~s[1] & s[3])) + 0x5a827999;
	if (i < 40)
		return (s[1] ^ s[2] ^ s[3]) + 0x6ed9eba1;
	if (i < 60)
		return ((s[1] & s[2]) ^ (s[1] & s[3]) ^ (s[2] & s[3])) + 0x8f1bbcdc;
	return (s[1] ^ s[2] ^ s[3]) + 0xca62c1d6;
}

static void add_block(uint32_t state[WORDS], const uint8_t *block)
{
	uint32_t w[80], s[WORDS];

	expand_block(block, w);
	memcpy(s, state, sizeof(s));
	for (size_t i = 0; i < 80; i++) {
		uint32_t next = rotate(s[0], 5) + mix_words(s, i) + s[4] + w[i];

		memmove(s + 1, s, 4 * sizeof(s[0]));
		s[2] = rotate(s[2], 30);
		s[0] = next;
	}
	for (size_t i = 0; i < WORDS; i++)
		state[i] += s[i];
}

/* Of a text that fits into two blocks with its padding. */
static void hash_text(const char *text, size_t len, uint8_t ret_digest[SHA1_LEN])
{
	uint32_t state[WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	uint8_t padded[2 * BLOCK_LEN] = {0};
	size_t used = len + 9 > BLOCK_LEN ? 2 * BLOCK_LEN : BLOCK_LEN;

	assert(len + 9 <= sizeof(padded));
	memcpy(padded, text, len);
	padded[len] = 0x80;
	padded[used - 2] = (uint8_t)(len * 8 >> 8);
	padded[used - 1] = (uint8_t)(len * 8);
	for (size_t at = 0; at < used; at += BLOCK_LEN)
		add_block(state, padded + at);
	for (size_t i = 0; i < SHA1_LEN; i++)
		ret_digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

char *ws_proof(const char *key)
{
	char text[KEY_MAX + sizeof(MAGIC)];
	uint8_t digest[SHA1_LEN];

	assert(strlen(key) <= KEY_MAX);
	(void)snprintf(text, sizeof(text), "%s" MAGIC, key);
	hash_text(text, strlen(text), digest);
	return base64_encode(digest, sizeof(digest));
}
