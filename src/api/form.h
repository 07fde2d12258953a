/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: one part of a multipart/form-data body that is in memory. Pure. */

#include "base/attr.h"
#include <stddef.h>

#define FORM_NAME_MAX 255

struct form_part {
	const char *data; /* in the body */
	size_t len;
	char filename[FORM_NAME_MAX + 1]; /* as sent; "" where none was */
};

/**
 * form_find - the part called @name. Return: 0, -ENOENT: there is none, or -EINVAL: @body is not
 * what @content_type says.
 */
int form_find(const char *content_type, const char *body, size_t len, const char *name,
              struct form_part *ret_part) attr_must_check;
