/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the API key, from the environment or a file, or given to the library; never from the command
 * line, which every user of the host can read.
 */

#include "base/attr.h"
#include "base/error.h"

/* NULL or "": not set. */
struct credentials_source {
	const char *key;
	const char *key_file;
};

/** credentials_check - ERR_INVALID: @key, which is @from there, cannot be part of a header. */
int credentials_check(const char *key, const char *from, struct error *err) attr_must_check;
/** credentials_read - *ret_key is owned, or NULL if none is set. ERR_INVALID: not a key. */
int credentials_read(const struct credentials_source *source, char **ret_key,
                     struct error *err) attr_must_check;
