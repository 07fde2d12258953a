/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: authentication, scope and request rate of the caller, after the header: an unknown caller's
 * body is not read.
 */

#include "base/attr.h"

struct error;
struct http_request;
struct principal;
struct route;
struct router;

/**
 * auth_check - @route NULL: none matches; only callers with a key learn that. Return: 0, or -1:
 * answered.
 */
int auth_check(struct router *r, struct http_request *req, const struct route *route);
/** auth_ask - the caller of a route that needs no key; NULL: unknown. */
const struct principal *auth_ask(struct router *r, struct http_request *req);
/**
 * auth_holds - again after a wait: the key may have been revoked, its tenant deleted or replaced by
 * a namesake.
 */
int auth_holds(struct router *r, const struct principal *p, struct error *err) attr_must_check;
/** auth_principal - the caller. */
const struct principal *auth_principal(const struct http_request *req);
