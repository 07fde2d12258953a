/* SPDX-License-Identifier: Apache-2.0 */
#include "api/router.h"

#include "api/auth.h"
#include "api/internal.h"
#include "api/json/decode_session.h"
#include "api/load.h"
#include "api/mcp/mcp.h"
#include "api/op/outputs.h"
#include "api/reply.h"
#include "api/tools/tool.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/observe/audit.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX_LEN 255

int router_check(const struct config *config, struct error *err)
{
	return tools_check(config, err);
}

struct router *router_new(const struct router_config *config)
{
	struct router *r = NEW(struct router);

	r->parts = *config;
	r->config = config->config;
	r->runs = config->runs;
	r->started_us = clock_us();
	r->outputs = outputs_new();
	r->mcp = mcp_new(r);
	return r;
}

void router_free(struct router *r)
{
	if (!r)
		return;
	mcp_free(r->mcp);
	outputs_free(r->outputs);
	free(r);
}

void router_set_unready(struct router *r, const char *reason)
{
	r->unready = reason;
	mcp_stop(r->mcp);
}

void router_policies_changed(struct router *r)
{
	mcp_policies_changed(r->mcp);
}

static bool is_method(const char *method, const struct route *route)
{
	return str_equal(method, route->method) ||
	       (str_equal(method, "HEAD") && str_equal(route->method, "GET"));
}

static void add_allowed(char *allow, const struct route *route)
{
	size_t used = strlen(allow);
	const char *head = str_equal(route->method, "GET") ? ", HEAD" : "";
	int r = str_format(allow + used, ROUTER_ALLOW_LEN - used, "%s%s%s", used ? ", " : "",
	                   route->method, head);

	assert(r == 0); /* the table is ours */
	(void)r;
}

/* A whole segment. Return: what follows it; NULL: there is none. */
static const char *take_id(const char *path, char ret_id[ROUTER_ID_LEN])
{
	size_t len = strcspn(path, "/");

	if (len == 0)
		return NULL;
	if (len < ROUTER_ID_LEN) {
		memcpy(ret_id, path, len);
		ret_id[len] = '\0';
	}
	if (len >= ROUTER_ID_LEN || !id_is_valid(ret_id, ROUTER_ID_LEN - 1))
		ret_id[0] = '\0';
	return path + len;
}

bool router_match(const char *pattern, const char *path, struct route_args *ret_args)
{
	*ret_args = (struct route_args){.rest = ""};
	for (;;) {
		size_t same = strcspn(pattern, "{");
		const char *part = pattern + same;

		if (part[0] == '\0')
			return str_equal(pattern, path);
		if (strncmp(pattern, path, same) != 0)
			return false;
		path += same;
		if (str_equal(part, ROUTE_REST)) {
			ret_args->rest = path;
			return true;
		}
		path = take_id(path, ret_args->id);
		if (!path)
			return false;
		pattern = strchr(part, '}') + 1;
	}
}

int router_find(const char *method, const char *path, const struct route **ret_route,
                char ret_allow[ROUTER_ALLOW_LEN], struct error *err)
{
	const struct route *route;
	struct route_args args;

	ret_allow[0] = '\0';
	for (size_t i = 0; (route = route_at(i)); i++) {
		if (!router_match(route->path, path, &args))
			continue;
		if (is_method(method, route)) {
			*ret_route = route;
			return 0;
		}
		add_allowed(ret_allow, route);
	}
	if (ret_allow[0])
		return error_set(err, ERR_BAD_METHOD, 0, "this path has %s only", ret_allow);
	return error_set(err, ERR_NOT_FOUND, 0,
	                 "no such path; /openapi.json has those that there are");
}

/* The name of "name", "name:port", "[v6]" or "[v6]:port". Return: 0 or -1: none of them. */
static int host_name(const char *host, char ret_name[HOST_MAX_LEN + 1])
{
	bool bracketed = host[0] == '[';
	const char *end = bracketed ? strchr(host, ']') : host + strcspn(host, ":");
	const char *rest;
	size_t len;

	if (!end || end == host)
		return -1;
	rest = end + bracketed;
	if (rest[0] != '\0' && (rest[0] != ':' || rest[1 + strspn(rest + 1, "0123456789")] != '\0'))
		return -1;
	host += bracketed;
	len = (size_t)(end - host);
	if (len > HOST_MAX_LEN)
		return -1;
	memcpy(ret_name, host, len);
	ret_name[len] = '\0';
	return 0;
}

static bool is_loopback_name(const char *name)
{
	struct in6_addr in6;
	struct in_addr in;

	if (inet_pton(AF_INET, name, &in) == 1)
		return ntohl(in.s_addr) >> 24 == IN_LOOPBACKNET;
	if (inet_pton(AF_INET6, name, &in6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&in6);
	return strcasecmp(name, "localhost") == 0;
}

static bool is_listed(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcasecmp(*list, name) == 0)
			return true;
	return false;
}

/* An address cannot be made to mean another host, as a name can: where the daemon is reached by
 * other hosts, they may call it by one. */
static bool is_own_name(const struct config *config, const char *name)
{
	struct in6_addr in6;
	struct in_addr in;

	if (is_loopback_name(name) || is_listed(config->allowed_hosts, name))
		return true;
	return config->listen && config->listen[0] && !http_address_is_loopback(config->listen) &&
	       (inet_pton(AF_INET, name, &in) == 1 || inet_pton(AF_INET6, name, &in6) == 1);
}

/* A page that came from here: its origin is the very name, with its port, that it calls us by, and
 * that was found to be one of ours. */
static bool is_own_origin(const char *host, const char *origin)
{
	const char *rest = str_has_prefix(origin, "http://")    ? origin + 7
	                   : str_has_prefix(origin, "https://") ? origin + 8
	                                                        : NULL;

	return host && rest && strcasecmp(host, rest) == 0;
}

int router_check_source(const struct config *config, bool is_unix, const char *host,
                        const char *origin, struct error *err)
{
	char name[HOST_MAX_LEN + 1];

	/* No browser speaks to a Unix socket, and clients put anything into Host there. */
	if (!is_unix && (!host || host_name(host, name) < 0 || !is_own_name(config, name)))
		return error_set(err, ERR_FORBIDDEN, 0, "Host is not a name of this daemon");
	if (origin && (is_unix || !is_own_origin(host, origin)) &&
	    !is_listed(config->allowed_origins, origin))
		return error_set(err, ERR_FORBIDDEN, 0, "Origin is not one this daemon serves");
	return 0;
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

bool router_is_json(const char *value)
{
	static const char type[] = "application/json", charset[] = "charset=";
	const char *s;

	if (!value)
		return false;
	s = skip_blanks(value);
	if (strncasecmp(s, type, sizeof(type) - 1) != 0)
		return false;
	s = skip_blanks(s + sizeof(type) - 1);
	if (s[0] == '\0')
		return true;
	if (s[0] != ';')
		return false;
	s = skip_blanks(s + 1);
	if (strncasecmp(s, charset, sizeof(charset) - 1) != 0)
		return s[0] == '\0';
	s += sizeof(charset) - 1;
	return strcasecmp(s, "utf-8") == 0 || strcasecmp(s, "\"utf-8\"") == 0;
}

static int check_form(const struct route *route, struct http_request *req, struct error *err)
{
	if (http_is_crowded(req) && !route->always)
		return error_set(err, ERR_BUSY, 0, "too many connections");
	if (route->body == ROUTE_BODY_JSON && !router_is_json(http_header(req, "Content-Type")))
		return error_set(err, ERR_BAD_MEDIA, 0, "Content-Type must be application/json");
	return 0;
}

static int find_route(struct http_request *req, const struct route **ret_route,
                      char ret_allow[ROUTER_ALLOW_LEN], struct error *err)
{
	if (router_find(http_method(req), http_path(req), ret_route, ret_allow, err) < 0)
		return -1;
	http_set_tag(req, REQUEST_TAG_ROUTE, (uintptr_t)*ret_route);
	return 0;
}

static int check_source(const struct router *r, const struct http_request *req, struct error *err)
{
	return router_check_source(r->config, http_is_unix(req), http_header(req, "Host"),
	                           http_header(req, "Origin"), err);
}

/* The answer to a request that has no route, or not in this form. */
static int refuse(struct http_request *req, const struct error *err, const char *allow)
{
	if (err->code == ERR_BAD_METHOD)
		reply_not_allowed(req, err, allow);
	else
		reply_error(req, err);
	return -1;
}

/* Where a log is required nothing is done that would not be in it; looking is free. */
static int check_audit(const struct router *r, const struct route *route, struct error *err)
{
	return str_equal(route->method, "GET") ? 0 : audit_check(r->parts.audit, err);
}

/* Of a body that is taken as it comes: its handler says how. */
static void handle_stream(struct router *r, struct http_request *req, const struct route *route)
{
	struct route_args args;

	(void)router_match(route->path, http_path(req), &args);
	args.principal = auth_principal(req);
	route->handle(r, req, &args);
}

static int on_headers(void *ctx, struct http_request *req, size_t *ret_max_body)
{
	struct router *r = ctx;
	const struct route *route = NULL;
	char allow[ROUTER_ALLOW_LEN] = "";
	struct error err = {0};
	bool found;

	if (check_source(r, req, &err) < 0)
		return refuse(req, &err, allow);
	if (cors_handle(req))
		return -1;
	found = find_route(req, &route, allow, &err) == 0;
	if (auth_check(r, req, found ? route : NULL) < 0)
		return -1;
	if (!found || check_form(route, req, &err) < 0 || check_audit(r, route, &err) < 0)
		return refuse(req, &err, allow);
	*ret_max_body = route->body == ROUTE_BODY_NONE ? 0 : r->config->max_body_bytes;
	if (*ret_max_body > 0)
		http_set_body_quota(req, auth_principal(req)->tenant);
	/* It answers, or takes the body. */
	if (route->body == ROUTE_BODY_STREAM)
		handle_stream(r, req, route);
	return 0;
}

/* A body that need not be there must not be believed to have been read. */
static int check_body(const struct route *route, const struct http_request *req, struct error *err)
{
	size_t len;
	const char *body = http_body(req, &len);

	return route->body == ROUTE_BODY_OPTIONAL ? decode_nothing(body, len, err) : 0;
}

static void on_request(void *ctx, struct http_request *req)
{
	struct router *r = ctx;
	const struct route *route = NULL;
	char allow[ROUTER_ALLOW_LEN];
	struct route_args args;
	struct error err = {0};

	/* Found before, by on_headers; the table does not change. */
	if (router_find(http_method(req), http_path(req), &route, allow, &err) < 0 ||
	    check_body(route, req, &err) < 0) {
		reply_error(req, &err);
		return;
	}
	(void)router_match(route->path, http_path(req), &args);
	args.principal = auth_principal(req);
	if (auth_holds(r, args.principal, &err) < 0)
		reply_unauthenticated(req, &err);
	else
		load_then_handle(r, req, route, &args);
}

static void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	(void)ctx;
	reply_error(req, err);
}

struct http_handlers router_handlers(struct router *r)
{
	return (struct http_handlers){
		.ctx = r,
		.on_headers = on_headers,
		.on_request = on_request,
		.on_error = on_error,
		.on_done = account_done,
	};
}
