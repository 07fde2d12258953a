/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a request without its code as text for the store. Excludes what the session decides (limits,
 * template, policy).
 */

#include "base/attr.h"
#include "base/error.h"

struct run_request;

/** run_request_to_json - Return: owned. */
char *run_request_to_json(const struct run_request *request) attr_must_check;
/** run_request_from_json - @ret_request has no code. ERR_STORAGE if damaged. */
int run_request_from_json(const char *text, struct run_request *ret_request,
                          struct error *err) attr_must_check;
