/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: who sends a request, and whether that is allowed: key, scope of the route, and how many
 * requests its tenant may send. Asked when the header is there, so that a stranger's body is not
 * read.
 */

#include "base/attr.h"

struct error;
struct http_request;
struct principal;
struct route;
struct router;

/**
 * auth_check - @route NULL: there is none of this path, which only those learn who have a key.
 * Return: 0, and auth_principal knows; or -1: the request is answered.
 */
int auth_check(struct router *r, struct http_request *req, const struct route *route);
/** auth_ask - who asks at a route that asks nobody for a key; NULL: somebody. */
const struct principal *auth_ask(struct router *r, struct http_request *req);
/**
 * auth_holds - once more, when the body is there or something was waited for: the key may have been
 * revoked, and its tenant be gone or another one of the same name.
 */
int auth_holds(struct router *r, const struct principal *p, struct error *err) attr_must_check;
/** auth_principal - who asks. */
const struct principal *auth_principal(const struct http_request *req);
