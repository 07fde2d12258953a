/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
#define ALPHABET_LEN (sizeof(alphabet) - 1)
/* Discard bytes from here on: they would favour the first letters. */
#define BYTE_LIMIT (256 - 256 % ALPHABET_LEN)

void id_random_bytes(void *ret_data, size_t len)
{
	uint8_t *p = ret_data;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		/* A guessable identifier is worse than none. */
		if (n < 0)
			abort();
		p += n;
		len -= (size_t)n;
	}
}

void id_random(char *ret_text, size_t len)
{
	uint8_t pool[64];
	size_t done = 0;

	while (done < len) {
		id_random_bytes(pool, sizeof(pool));
		for (size_t i = 0; i < sizeof(pool) && done < len; i++)
			if (pool[i] < BYTE_LIMIT)
				ret_text[done++] = alphabet[pool[i] % ALPHABET_LEN];
	}
	ret_text[len] = '\0';
}

#define ID_CHARACTERS                                                                              \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"                                     \
	"0123456789_-"

static bool has_only(const char *id, size_t max, const char *allowed)
{
	size_t len = strspn(id, allowed);

	return len > 0 && len <= max && id[len] == '\0';
}

bool id_is_valid(const char *id, size_t max)
{
	return has_only(id, max, ID_CHARACTERS);
}

bool id_is_dotted(const char *id, size_t max)
{
	return id[0] != '.' && has_only(id, max, ID_CHARACTERS ".");
}
