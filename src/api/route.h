/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the table of routes. A dialect is a family of routes with an error envelope in common; each
 * has its table in its own folder (v1/routes.c ...). Everything that differs between routes is a
 * column here; nothing is inferred from a path.
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
/* Ends a pattern: any number of segments, including none. */
#define ROUTE_REST "{path...}"

/* The variable parts of a path, and the caller. */
struct route_args {
	char id[ROUTE_ID_LEN];             /* for {id}; "": malformed, so nothing has it */
	const char *rest;                  /* for {path...}; part of the request's path; not NULL */
	const struct principal *principal; /* the caller; set after authentication */
	const struct fields *query;        /* of the route; for query_decode */
};

/* @args is borrowed for the call. */
typedef void route_fn(struct router *r, struct http_request *req, const struct route_args *args);

enum route_body {
	ROUTE_BODY_NONE,     /* a body is refused */
	ROUTE_BODY_JSON,     /* at most http.max_body bytes */
	ROUTE_BODY_OPTIONAL, /* none, or an empty object */
	ROUTE_BODY_STREAM,   /* the handler is called after the header and reads the body itself */
	ROUTE_BODY_ANY,      /* none, or any type; the handler checks it */
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
	const char *path; /* at most one {id}, a whole segment; ROUTE_REST only at the end. The
	                     first match wins */
	enum route_body body;
	bool always; /* served even when there are too many connections */
	route_fn *handle;
	const char *summary;          /* for docs/api/openapi.yaml */
	enum scope scope;             /* that a key needs */
	enum route_load load;         /* not for ROUTE_BODY_STREAM */
	const struct fields *request; /* of a JSON body; NULL: see docs/api/openapi.in.yaml */
	const struct fields *query;   /* of the parameters in the query; NULL: none */
	const char *audit; /* action to log, "key.create"; NULL: core logs what it does itself */
};

struct dialect {
	const char *name;
	const struct route *routes;
	size_t count;
	/* NULL-terminated, or NULL. Requests below these that match no row get this dialect's
	 * errors. */
	const char *const *prefixes;
	/* The body of an error; may change *status. Return: owned. NULL: reply_error_object. */
	json_t *(*error_body)(const struct error *err, const char *request_id, int *status);
	/* State of a dialect, for the life of the router; all may be NULL. */
	void (*open)(struct router *r);
	void (*close)(struct router *r);
	void (*stop)(struct router *r);             /* the daemon is about to stop */
	void (*policies_changed)(struct router *r); /* they were reloaded */
	/* Keys were revoked: end their requests. NULL: the router cuts them off. */
	void (*keys_changed)(struct router *r);
};

/* A row that matches a request. */
struct route_match {
	const struct dialect *dialect;
	const struct route *route;
};

/** route_find - the first row for @method and @path. HEAD uses the row of GET. With ERR_BAD_METHOD,
 * @ret_allow lists the methods of the path. Pure. */
int route_find(const struct dialect *const *dialects, const char *method, const char *path,
               struct route_match *ret_match, char ret_allow[ROUTE_ALLOW_LEN],
               struct error *err) attr_must_check;
/**
 * route_parse - the parts of @path at {id} and {path...}. A malformed id becomes "", which nothing
 * has, so that it gets the same answer as an unknown one. The handler checks the rest. Return:
 * whether they match. Pure.
 */
bool route_parse(const char *pattern, const char *path, struct route_args *ret_args);
/** route_at - all rows of @dialects in order; false past the end. */
bool route_at(const struct dialect *const *dialects, size_t index, struct route_match *ret_match);
/** route_dialect - by the prefixes; NULL: none. Pure. */
const struct dialect *route_dialect(const struct dialect *const *dialects, const char *path);
