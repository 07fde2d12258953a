/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the functions of the rows of tools.c, and what they share. */

#include "api/tools/tool.h"
#include "core/request/workpath.h"

struct runner;

/* tool_language.c */
extern const char *const tool_languages[]; /* that an argument may name; NULL-terminated */
/** tool_runner - that of @language; NULL with *err: what there is instead. */
const struct runner *tool_runner(const struct call *call, const char *language, struct error *err);
tool_fn tool_list_languages;

/* tool_sandbox.c */
tool_fn tool_create_sandbox;
tool_fn tool_list_sandboxes;
tool_fn tool_terminate_sandbox;
tool_fn tool_interrupt;
/** tool_find_image - the template that @image means. */
int tool_find_image(const struct router *r, const char *tenant, const char *image,
                    const char **ret_template, struct error *err) attr_must_check;
/** tool_rename_field - an error of core with the field's name in these dialects. */
void tool_rename_field(struct error *err);
/** tool_view_sandbox - as agents are told of one. Return: owned. */
json_t *tool_view_sandbox(const struct session *session) attr_must_check;
const char *tool_sandbox_status(const struct session *session);

/* tool_run.c */
tool_fn tool_execute_code;
tool_fn tool_run_in_sandbox;

/* tool_request.c */
/** tool_clean_path - "x" or "/workspace/x" as "x"; anything else is refused by @field. */
int tool_clean_path(const char *path, const char *field, char ret_path[WORKPATH_MAX + 1],
                    struct error *err) attr_must_check;

/* tool_file.c */
tool_fn tool_write_file;
tool_fn tool_read_file;
tool_fn tool_list_files;
