/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/identity/key.h"
#include "fuzz.h"

/*
 * The credentials of a request: the value of Authorization, a newline, the value of X-API-Key. What
 * is accepted as a key must be one and print the same, and both headers must agree.
 */

static void check(const struct key *key, const char *authorization, const char *api_key)
{
	char text[KEY_TEXT_LEN + 1];
	struct key again;

	key_format(key, text);
	if (strlen(text) != KEY_TEXT_LEN || key_parse(text, &again) < 0 ||
	    memcmp(key, &again, sizeof(again)) != 0)
		abort();
	if (authorization && !strstr(authorization, text))
		abort();
	if (api_key && !strstr(api_key, text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xmemdup0((const char *)data, size);
	char *newline = strchr(text, '\n');
	struct key key = {0};

	if (newline)
		*newline = '\0';
	if (key_from_headers(text, NULL, &key) == 1)
		check(&key, text, NULL);
	if (newline && key_from_headers(NULL, newline + 1, &key) == 1)
		check(&key, NULL, newline + 1);
	if (newline && key_from_headers(text, newline + 1, &key) == 1)
		check(&key, text, newline + 1);
	free(text);
	return 0;
}
