/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: life and changes of sandboxes, one by its path or many by a batch. */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>

struct session;
struct router;

int sandboxes_do_start(struct session *session, struct error *err) attr_must_check;
int sandboxes_do_stop(struct session *session, struct error *err) attr_must_check;
/** sandboxes_check_change - whether @parameters is the body of a change. */
int sandboxes_check_change(const struct router *r, const json_t *parameters,
                           struct error *err) attr_must_check;
/** sandboxes_change - @parameters: the body of PUT (@whole) or PATCH; all or nothing. */
int sandboxes_change(struct session *session, const json_t *parameters, bool whole,
                     struct error *err) attr_must_check;
