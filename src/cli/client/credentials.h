/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the API key, from the environment or a file; never from the command line, which every user
 * of the host can read.
 */

#include "base/attr.h"
#include "base/error.h"

/* NULL or "": not set. */
struct credentials_source {
	const char *key;
	const char *key_file;
};

/** credentials_read - *ret_key is owned, or NULL if none is set. ERR_INVALID: not a key. */
int credentials_read(const struct credentials_source *source, char **ret_key,
                     struct error *err) attr_must_check;
