/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the key that requests carry: of the environment, or of a file. Never of the command line,
 * which everybody on the host can read.
 */

#include "base/attr.h"
#include "base/error.h"

/* NULL or "": not there. */
struct credentials_source {
	const char *key;
	const char *key_file;
};

/** credentials_read - *ret_key is owned, or NULL where there is none. ERR_INVALID: it is no key. */
int credentials_read(const struct credentials_source *source, char **ret_key,
                     struct error *err) attr_must_check;
