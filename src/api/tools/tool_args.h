/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the decoded arguments of a tool, filled by the field tables of tools.c and sandboxes/. */

#include "api/json/decode.h"
#include "core/request/session_request.h"
#include "driver/driver.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tool_encoding {
	TOOL_UTF8,
	TOOL_BASE64,
};

/* Of manage_session. */
enum tool_action {
	TOOL_CREATE,
	TOOL_LIST,
	TOOL_INTERRUPT,
	TOOL_END,
	TOOL_ACTION_COUNT
};

/* 0, NULL: not given. Pointers are owned. */
struct tool_args {
	/* First: the rows of decode_fields.h name its members. */
	struct decoded_run exec;
	char *working_dir;
	char **packages;
	bool installed; /* they are */
	json_t *options;
	/* For execute_code "" or NULL: none. */
	char *sandbox_id;
	struct session_request session;
	char *image, *workspace_dir;
	char *path, *content;
	size_t content_len;
	enum tool_encoding encoding;
	char *mode;
	bool create_backup, force_overwrite, recursive;
	json_t *checksum; /* true, or the expected SHA-256 */
	uint64_t max_size, offset;
	enum tool_action action;
	char *execution_id;
	enum output_stream stream;
	char *query, *callee; /* of more_tools; of search_tools */
	uint64_t limit;
	json_t *arguments;
};

void tool_args_done(struct tool_args *args);
