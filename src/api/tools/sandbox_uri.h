/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: URIs of resources: sandbox://ID/PATH is a file or directory of a session,
 * execution://ID/stdout or /stderr a program's output, log://ID a session's log, template://ID,
 * policy://NAME. Pure.
 */

#include "base/attr.h"
#include "core/request/workpath.h"
#include <stdbool.h>

#define SANDBOX_URI_FILE      "sandbox://"
#define SANDBOX_URI_EXECUTION "execution://"
#define SANDBOX_URI_LOG       "log://"
#define SANDBOX_URI_TEMPLATE  "template://"
#define SANDBOX_URI_POLICY    "policy://"

enum sandbox_uri_kind {
	SANDBOX_URI_IS_FILE,
	SANDBOX_URI_IS_EXECUTION,
	SANDBOX_URI_IS_LOG,
	SANDBOX_URI_IS_TEMPLATE,
	SANDBOX_URI_IS_POLICY,
	SANDBOX_URI_KIND_COUNT
};

#define SANDBOX_URI_ID_MAX 64

struct sandbox_uri {
	enum sandbox_uri_kind kind;
	char id[SANDBOX_URI_ID_MAX + 1];
	char path[WORKPATH_MAX + 1]; /* decoded and cleaned (workpath_clean); "": none */
};

/** sandbox_uri_file - escapes @path. Return: owned. */
char *sandbox_uri_file(const char *session_id, const char *path) attr_must_check;
/** sandbox_uri_read - Return: 0, or -1: not a resource. */
int sandbox_uri_read(const char *uri, struct sandbox_uri *ret_uri) attr_must_check;
