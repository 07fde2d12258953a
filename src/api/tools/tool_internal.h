/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by the functions of the rows of tools.c. */

#include "api/tools/tool.h"
#include "core/request/workpath.h"
#include "driver/box_spec.h"

struct buf;
struct policy_cuts;
struct run_record_info;

tool_fn tool_list_languages;

tool_fn tool_more_tools;
tool_fn tool_search_tools;

tool_fn tool_manage_session;
tool_fn tool_create_sandbox;
tool_fn tool_list_sandboxes;
tool_fn tool_terminate_sandbox;
tool_fn tool_interrupt;
int tool_find_image(const struct router *r, const char *tenant, const char *image,
                    const char **ret_template, struct error *err) attr_must_check;
/**
 * tool_ease_network - bridge and host are other systems' words for a network: a policy that
 * grants less gives that, and none gives more. Return: what was asked for, for
 * tool_network_note; NONE: nothing to tell.
 */
enum box_network tool_ease_network(struct session_request *request);
/** tool_network_note - that the session has less. Return: owned; NULL: it has not. */
char *tool_network_note(enum box_network asked, const struct session *session) attr_must_check;
/** tool_rename_field - from core's field to the tool's argument. */
void tool_rename_field(struct error *err);
/** tool_view_sandbox - Return: owned. */
json_t *tool_view_sandbox(const struct session *session) attr_must_check;
const char *tool_sandbox_status(const struct session *session);

/** tool_noun - what the reader calls a session. */
const char *tool_noun(const struct call *call);

tool_fn tool_install_package;
/** tool_install - args.packages into the sandbox; @then, or the call ends with the failure. */
void tool_install(struct call *call, const char *language, void (*then)(struct call *call));
/** tool_lacks_packages - whether @session lacks one of args.packages, of @language. */
bool tool_lacks_packages(const struct call *call, const struct session *session,
                         const char *language);

tool_fn tool_execute_code;
tool_fn tool_exec_command;
tool_fn tool_run_in_sandbox;

tool_fn tool_read_output;
/** tool_find_output - NULL: not in memory. Borrowed until the next event. */
const struct buf *tool_find_output(const struct call *call, const char *id,
                                   enum output_stream stream);
/** tool_add_cuts - what was requested beyond a limit, for the text of an answer. */
void tool_add_cuts(struct buf *b, const struct policy_cuts *cuts);
void tool_result_finish(struct call *call, const struct run_record_info *run);
/** tool_is_image - clients display this type. */
bool tool_is_image(const char *type);
/** tool_image - takes @data, base64. Return: owned. */
json_t *tool_image(const char *type, json_t *data) attr_must_check;

/** tool_clean_path - "x" or "/workspace/x" as "x"; else an error for @field. */
int tool_clean_path(const char *path, const char *field, char ret_path[WORKPATH_MAX + 1],
                    struct error *err) attr_must_check;
tool_fn tool_write_file;
tool_fn tool_read_file;
tool_fn tool_list_files;
