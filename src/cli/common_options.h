/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: option rows that many commands share. */

#include "cli/client/endpoint.h"
#include "cli/options.h"

/* Where the daemon is: for a struct endpoint_options at @offset. */
/* clang-format off */
#define ENDPOINT_ROWS(offset) \
	{"socket",  0, OPTION_TEXT, (offset) + offsetof(struct endpoint_options, socket),  "PATH", "the daemon's Unix socket"}, \
	{"url",     0, OPTION_TEXT, (offset) + offsetof(struct endpoint_options, url),     "URL",  "the daemon's address: https://box.example:8000"}, \
	{"ca-file", 0, OPTION_TEXT, (offset) + offsetof(struct endpoint_options, ca_file), "FILE", "certificates (PEM) that may vouch for an https daemon; default: the system's"}
/* clang-format on */
