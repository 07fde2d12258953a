/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a file of any size in a form (multipart/form-data) into a box. The dialect decides on other
 * fields, where the file goes and the response.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/request/workpath.h"
#include <stdbool.h>
#include <stdint.h>

struct file_item;
struct http_request;
struct route_args;
struct router;
struct session;
struct upload_form;

/* Never NULL; "": not given. */
struct upload_form_names {
	const char *place;    /* the query's or the field's */
	const char *filename; /* the file part's */
};

/* Filled by the route's table. */
struct upload_form_query {
	const char *place; /* NULL: not given */
};

struct upload_form_dialect {
	const char *place; /* query parameter with the place */
	const char *field; /* overrides the query; NULL: none */
	bool strict;       /* refuse unknown fields, else ignore */
	/* The file's path. Return: 0, or -1 with *err. */
	int (*settle)(const struct upload_form_names *names, char ret_path[WORKPATH_MAX + 1],
	              struct error *err);
	/* The file was written to @path. */
	void (*answer)(struct http_request *req, const char *session_id, const char *path,
	               const struct file_item *item);
};

void upload_form_free(struct upload_form *u);
/**
 * upload_form_new - from the header; @dialect must stay. NULL with *err: not a form, or too large.
 */
struct upload_form *upload_form_new(struct router *r, struct http_request *req,
                                    const struct route_args *args,
                                    const struct upload_form_dialect *dialect,
                                    struct error *err) attr_must_check;
/** upload_form_begin - write the body to @session; takes @u. For ROUTE_BODY_STREAM. */
void upload_form_begin(struct upload_form *u, const struct session *session);
