/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: options that many commands share. */

#include "cli/client/endpoint.h"
#include "cli/options.h"
#include <stdbool.h>

/* Options of a command that sends a request and prints the response. */
struct common_options {
	struct endpoint_options at;
	bool json;
};

/* A row is one option, however long its line. */
/* clang-format off */

/* Where the daemon is: for a struct endpoint_options at @offset. */
#define ENDPOINT_ROWS(offset) \
	{"socket",  0, OPTION_TEXT, (offset) + offsetof(struct endpoint_options, socket),  "PATH", "the daemon's Unix socket"}, \
	{"url",     0, OPTION_TEXT, (offset) + offsetof(struct endpoint_options, url),     "URL",  "the daemon's address: https://box.example:8000"}, \
	{"ca-file", 0, OPTION_TEXT, (offset) + offsetof(struct endpoint_options, ca_file), "FILE", "trust these CA certificates (PEM) for https; default: the system's"}

/* For a struct common_options at @offset. */
#define COMMON_ROWS(offset) \
	{"json", 0, OPTION_FLAG, (offset) + offsetof(struct common_options, json), NULL, "print the daemon's response as JSON"}, \
	ENDPOINT_ROWS((offset) + offsetof(struct common_options, at))

/* clang-format on */
