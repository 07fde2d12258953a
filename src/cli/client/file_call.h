/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: upload or download of a file, streamed between a descriptor and the daemon. */

#include "base/attr.h"
#include "base/error.h"
#include "cli/client/endpoint.h"
#include <jansson.h>
#include <stdbool.h>

struct file_call {
	const char *path; /* with the query */
	int fd;           /* upload: read; download: written */
	int interrupt_fd; /* from interrupt_open */
	bool download;
	int failure; /* negative errno of @fd; 0: none */
};

/**
 * file_call_run - Return: 0 with the HTTP status, or -1. *ret_answer is the owned response object,
 * or NULL if a download succeeded.
 */
int file_call_run(struct file_call *call, const struct endpoint *endpoint, json_t **ret_answer,
                  int *ret_status, struct error *err) attr_must_check;
