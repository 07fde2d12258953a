/* SPDX-License-Identifier: Apache-2.0 */
#include "client/credentials.h"

#include <fcntl.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define KEY_MAX 200

int credentials_check(const char *key, const char *from, struct error *err)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_-.~+/=";
	size_t len = strspn(key, letters);

	/* It becomes part of a header. */
	if (len == 0 || len > KEY_MAX || key[len] != '\0')
		return error_set(err, ERR_INVALID, 0, "%s does not contain a valid key", from);
	return 0;
}

int credentials_read(const struct credentials_source *source, char **ret_key, struct error *err)
{
	const char *key = source->key, *from = "MILLIBOX_API_KEY";
	char text[KEY_MAX + 2];
	int r;

	*ret_key = NULL;
	if (!key || !*key) {
		from = source->key_file;
		if (!from || !*from)
			return 0;
		r = file_read_text_at(AT_FDCWD, from, text, sizeof(text));
		if (r < 0)
			return error_set(err, ERR_INVALID, -r, "read the key from %s", from);
		key = text;
	}
	if (credentials_check(key, from, err) < 0)
		return -1;
	*ret_key = xstrdup(key);
	return 0;
}
