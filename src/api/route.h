/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the table of routes. A dialect is a family of routes with a common error envelope; its table
 * is in its own folder (v1/routes.c ...). What differs between routes is a column; nothing is
 * inferred from a path.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/identity/scope.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct fields;
struct http_request;
struct principal;
struct router;

#define ROUTE_ALLOW_LEN 64
#define ROUTE_ID_LEN    65 /* no id is longer */
/* Ends a pattern: any number of segments, also none. */
#define ROUTE_REST "{path...}"
/* Ends a pattern: one segment. */
#define ROUTE_PORT "{port}"

struct route_args {
	char id[ROUTE_ID_LEN]; /* for {id}; "": malformed, so nothing has it */
	const char *rest;      /* for {path...} and {port}; in the request's path; not NULL */
	const struct principal *principal; /* set after authentication */
	const struct fields *query;        /* of the route */
	/* For unknown fields, which are ignored (fields_decode_open). NULL: they are errors. */
	json_t *warnings;
};

/* @args is borrowed for the call. */
typedef void route_fn(struct router *r, struct http_request *req, const struct route_args *args);

enum route_body {
	ROUTE_BODY_NONE,     /* a body is refused */
	ROUTE_BODY_JSON,     /* at most http.max_body bytes */
	ROUTE_BODY_OPTIONAL, /* none, or an empty object */
	ROUTE_BODY_STREAM,   /* called after the header; reads the body itself */
	ROUTE_BODY_ANY,      /* none, or any type; for the handler to check */
};

/* Loaded from the store before the handler runs. */
enum route_load {
	ROUTE_LOAD_NONE,
	ROUTE_LOAD_SESSION,
	ROUTE_LOAD_LATEST, /* a session and its newest execution */
	ROUTE_LOAD_EXECUTION,
};

struct route {
	const char *method;
	const char
		*path; /* at most one {id}, a whole segment; ROUTE_REST or ROUTE_PORT at the end */
	enum route_body body;
	bool always; /* even with too many connections */
	route_fn *handle;
	const char *summary;          /* for docs/api/openapi.yaml */
	enum scope scope;             /* that a key needs */
	enum route_load load;         /* not for ROUTE_BODY_STREAM */
	const struct fields *request; /* JSON body; NULL: see docs/api/openapi.in.yaml */
	const struct fields *query;   /* NULL: none */
	const char *audit;            /* "key.create"; NULL: core logs it */
	/* Another system defined the path, and ignored unknown fields: they are listed in
	 * `warnings` of the response. Else they are errors. */
	bool upstream;
	bool shared;   /* another system has it too, as those: errors have its names besides */
	bool compat;   /* only for clients of another system */
	bool any_host; /* answered whatever Host says: what it tells may be known to anyone */
};

struct dialect {
	const char *name;
	const struct route *routes;
	size_t count;
	/* NULL-terminated, or NULL. Requests below these without a row get this dialect's errors.
	 * */
	const char *const *prefixes;
	/* May change *status. Return: owned. NULL: reply_error_object. */
	json_t *(*error_body)(const struct error *err, const char *request_id, int *status);
	/* For the life of the router; all may be NULL. */
	void (*open)(struct router *r);
	void (*close)(struct router *r);
	void (*stop)(struct router *r); /* the daemon is about to stop */
	void (*policies_changed)(struct router *r);
	/* Revoked keys: end their requests. NULL: the router cuts them off. */
	void (*keys_changed)(struct router *r);
};

struct route_match {
	const struct dialect *dialect;
	const struct route *route;
};

/**
 * route_find - the first row for @method and @path. HEAD uses the row of GET. With ERR_BAD_METHOD
 * @ret_allow lists the path's methods. Pure.
 */
int route_find(const struct dialect *const *dialects, const char *method, const char *path,
               struct route_match *ret_match, char ret_allow[ROUTE_ALLOW_LEN],
               struct error *err) attr_must_check;
/**
 * route_parse - the parts of @path at {id} and {path...}. A malformed id becomes "", which nothing
 * has: the same answer as for an unknown one. The handler checks the rest. Return: whether they
 * match. Pure.
 */
bool route_parse(const char *pattern, const char *path, struct route_args *ret_args);
/** route_at - all rows in order; false past the end. */
bool route_at(const struct dialect *const *dialects, size_t index, struct route_match *ret_match);
/** route_dialect - by prefix; NULL: none. Pure. */
const struct dialect *route_dialect(const struct dialect *const *dialects, const char *path);
