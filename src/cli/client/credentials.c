/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client/credentials.h"

#include <fcntl.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

#define KEY_MAX 200

static int check_key(const char *key, const char *from, struct error *err)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_-.~+/=";
	size_t len = strspn(key, letters);

	/* The key becomes part of a header. */
	if (len == 0 || len > KEY_MAX || key[len] != '\0')
		return error_set(err, ERR_INVALID, 0, "%s does not contain a valid key", from);
	return 0;
}

int credentials_read(const struct credentials_source *source, char **ret_key, struct error *err)
{
	char text[KEY_MAX + 2];
	int r;

	*ret_key = NULL;
	if (source->key && *source->key) {
		if (check_key(source->key, "MILLIBOX_API_KEY", err) < 0)
			return -1;
		*ret_key = xstrdup(source->key);
		return 0;
	}
	if (!source->key_file || !*source->key_file)
		return 0;
	r = file_read_text_at(AT_FDCWD, source->key_file, text, sizeof(text));
	if (r < 0)
		return error_set(err, ERR_INVALID, -r, "read the key from %s", source->key_file);
	if (check_key(text, source->key_file, err) < 0)
		return -1;
	*ret_key = xstrdup(text);
	return 0;
}
