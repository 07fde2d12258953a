/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: a request that changes something which has to be on the disk before it is answered. The
 * answer is made with the change and sent when that is written; a client that leaves meanwhile does
 * not undo it.
 */

#include "base/error.h"
#include "core/identity/identity.h"
#include <jansson.h>

struct change;
struct http_request;

/** change_new - answered with @status and the body that change_set_body gives. */
struct change *change_new(struct http_request *req, int status);
/** change_done - what is to be called at its end; frees it. */
struct identity_done change_done(struct change *change);
/** change_set_body - takes @body. */
void change_set_body(struct change *change, json_t *body);
/** change_set_undo - @fn is called with @ctx, which is freed with the change, where it could not be
 * written and has been made already. */
void change_set_undo(struct change *change, void (*fn)(void *ctx), void *ctx);
/** change_begun - @r is what the call that was given change_done returned: 0: its end is told by
 * that; 1: it is over, nobody keeps it; -1: *err says why it did not begin. */
void change_begun(struct change *change, int r, const struct error *err);
/** change_refuse - it did not begin: answers, and frees it. */
void change_refuse(struct change *change, const struct error *err);
