/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a box as its runtime is told. Pure: nothing in it comes from a request but flags. */

#include "base/buf.h"
#include "engine/internal.h"
#include <stdbool.h>
#include <stddef.h>

#define SPEC_MAX        ((size_t)64 * 1024)
#define SPEC_AGENT_PATH "/opt/millibox/runners/" AGENT_NAME

struct spec {
	const char *const *agent; /* its command line; ends with NULL */
	const struct proc_mask *masks;
	size_t mask_count;
	bool is_single; /* the one id is root where the runtime starts, and the payload's in the box
	                 */
	bool is_guest;  /* a kernel in user space: it has devices of its own */
};

/** spec_write_config - an OCI config.json. Return: 0 or a negative errno. */
int spec_write_config(const struct spec *spec, struct buf *ret_text);
/** spec_write_arguments - options of bwrap, each with a NUL behind. */
int spec_write_arguments(const struct spec *spec, struct buf *ret_text);
