/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: upload or download of a file, streamed between the daemon and a descriptor or memory. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "client/endpoint.h"
#include <jansson.h>
#include <stdbool.h>

struct file_call {
	const char *path; /* with the query */
	int fd;           /* upload: read; download: written */
	int cancel_fd;    /* readable: stop */
	bool download;
	/* Instead of @fd: a download is appended, an upload is what it has. NULL: @fd. */
	struct buf *memory;
	size_t taken;                              /* of @memory or @fd, by an upload */
	int failure;                               /* negative errno of @fd; 0: none */
	void (*on_bytes)(void *ctx, size_t bytes); /* sent or received; NULL: not reported */
	void *ctx;
};

/**
 * file_call_run - Return: 0 with the HTTP status, or -1. *ret_answer is the owned response object,
 * or NULL if a download succeeded.
 */
int file_call_run(struct file_call *call, const struct endpoint *endpoint, json_t **ret_answer,
                  int *ret_status, struct error *err) attr_must_check;
