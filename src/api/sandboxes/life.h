/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: changes of sandboxes, alone or in a batch. */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>
#include <stdbool.h>

struct session;
struct router;

int sandboxes_do_start(struct session *session, struct error *err) attr_must_check;
int sandboxes_do_stop(struct session *session, struct error *err) attr_must_check;
/** sandboxes_check_change - decode only. */
int sandboxes_check_change(const struct router *r, const json_t *parameters,
                           struct error *err) attr_must_check;
/** sandboxes_change - @parameters: of PUT (@whole) or PATCH; all or nothing. */
int sandboxes_change(struct session *session, const json_t *parameters, bool whole,
                     struct error *err) attr_must_check;
