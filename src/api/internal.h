/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what the files of api/ share: the table of routes and the handlers in it. */

#include "api/router.h"

struct router {
	const struct config *config;
	struct exec_service *execs;
	const char *unready; /* literal; NULL: ready */
};

typedef void route_fn(struct router *r, struct http_request *req);

enum route_body {
	ROUTE_BODY_NONE, /* there must not be one */
	ROUTE_BODY_JSON, /* of at most http.max_body bytes */
};

struct route {
	const char *method;
	const char *path;
	enum route_body body;
	bool always; /* answered even when there are too many connections */
	route_fn *handle;
	const char *summary; /* as in docs/api/openapi.yaml */
};

/** route_at - NULL past the end. */
const struct route *route_at(size_t index);

route_fn v1_execute;
route_fn v1_healthz;
route_fn v1_readyz;
