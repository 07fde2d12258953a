/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what agents can read: files of sandboxes, output of executions, logs, templates, policies.
 * Operations on a call (call.h), since they may wait for the store or a box.
 */

#include "api/tools/call.h"
#include "base/attr.h"

struct sandbox_uri;

#define RESOURCE_URI_MAX 4096
#define RESOURCE_PAGE    50 /* templates and policies per page */

/** resource_check - may the caller know of @uri? ERR_NO_SCOPE, ERR_NOT_FOUND. */
int resource_check(const struct call *call, const struct sandbox_uri *uri,
                   struct error *err) attr_must_check;
/** resource_parse - @text may be NULL; ERR_INVALID or ERR_NOT_FOUND. */
int resource_parse(const char *text, struct sandbox_uri *ret_uri,
                   struct error *err) attr_must_check;
/** resource_read - ends @call with {contents}. */
void resource_read(struct call *call, const char *uri);
/**
 * resource_list - ends @call with {resources} from @offset on, and {nextOffset} unless it is the
 * last page.
 */
void resource_list(struct call *call, uint64_t offset);
/** resource_templates - Return: owned. */
json_t *resource_templates(void) attr_must_check;
