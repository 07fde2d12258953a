/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a file in a form (multipart/form-data) on its way into a box, as large as it likes. What a
 * form may have beside the file, where that goes and what is answered is the dialect's.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/request/workpath.h"
#include <stdbool.h>
#include <stdint.h>

struct file_item;
struct http_request;
struct router;
struct session;
struct upload;

/* What was said of a file's place. Never NULL; "": nothing. */
struct upload_said {
	const char *place;    /* by the query or by the field */
	const char *filename; /* by the file itself */
};

struct upload_dialect {
	const char *query; /* parameter that says where it goes */
	const char *field; /* of the form, which says the same and counts more; NULL: none does */
	bool strict;       /* fields that nobody knows are refused; else passed over */
	/* Where it is to be. Return: 0, or -1 with *err. */
	int (*settle)(const struct upload_said *said, char ret_path[WORKPATH_MAX + 1],
	              struct error *err);
	/* Answers @req: the file is there, at @path. */
	void (*answer)(struct http_request *req, const char *session_id, const char *path,
	               const struct file_item *item);
};

void upload_free(struct upload *u);
/** upload_new - from the header of a request, before anything is made for it; @dialect is borrowed
 * for good. NULL with *err: it is no form, or too large. */
struct upload *upload_new(struct router *r, struct http_request *req, const char *tenant,
                          const struct upload_dialect *dialect, struct error *err) attr_must_check;
/** upload_begin - the body goes into @session; @u is taken. From on_headers. */
void upload_begin(struct upload *u, const struct session *session);
