/* SPDX-License-Identifier: Apache-2.0 */
#include "api/router.h"

#include "api/auth.h"
#include "api/internal.h"
#include "api/json/decode.h"
#include "api/lookup.h"
#include "api/reply.h"
#include "api/turns.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/identity/identity.h"
#include "core/observe/audit.h"
#include "io/timer.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX_LEN 255
#define EXPIRY_MS    60000

static void handle_request(void *ctx, struct http_request *req);

struct router *router_new(const struct router_config *config)
{
	struct router *r = NEW(struct router);

	r->parts = *config;
	r->config = config->config;
	r->runs = config->runs;
	r->started_us = clock_us();
	r->turns = turns_new(&(struct turns_config){config->loop, handle_request, r});
	for (const struct dialect *const *d = config->dialects; *d; d++)
		if ((*d)->open)
			(*d)->open(r);
	return r;
}

void router_free(struct router *r)
{
	if (!r)
		return;
	for (const struct dialect *const *d = r->parts.dialects; *d; d++)
		if ((*d)->close)
			(*d)->close(r);
	timer_free(r->expiry);
	turns_free(r->turns);
	free(r);
}

void router_set_unready(struct router *r, const char *reason)
{
	r->unready = reason;
	for (const struct dialect *const *d = r->parts.dialects; *d; d++)
		if ((*d)->stop)
			(*d)->stop(r);
}

void router_policies_changed(struct router *r)
{
	for (const struct dialect *const *d = r->parts.dialects; *d; d++)
		if ((*d)->policies_changed)
			(*d)->policies_changed(r);
}

static const struct dialect *dialect_of(const struct http_request *req)
{
	return (const struct dialect *)http_tag(req, REQUEST_TAG_DIALECT);
}

static bool has_lost_its_key(void *ctx, const struct http_request *req)
{
	const struct dialect *dialect = dialect_of(req);
	struct router *r = ctx;
	struct error err = {0};

	return !(dialect && dialect->keys_changed) && auth_holds(r, auth_principal(req), &err) < 0;
}

static void tell_dialects(struct router *r)
{
	for (const struct dialect *const *d = r->parts.dialects; *d; d++)
		if ((*d)->keys_changed)
			(*d)->keys_changed(r);
}

void router_keys_changed(struct router *r, struct http_request *req)
{
	tell_dialects(r);
	http_cut_others(req, has_lost_its_key, r);
}

/* Looks at the clock at least once a minute: it may be set. */
void router_keys_added(struct router *r)
{
	uint64_t due_ms = r->parts.identity ? identity_next_expiry(r->parts.identity) : 0;
	uint64_t now_ms = clock_real_ms();
	uint64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 0;

	if (!r->expiry || due_ms == 0)
		return;
	timer_start(r->expiry, USEC_PER_MS * (wait_ms < EXPIRY_MS ? wait_ms : EXPIRY_MS));
}

static void on_expiry(void *ctx)
{
	struct router *r = ctx;

	tell_dialects(r);
	http_server_cut(r->server, has_lost_its_key, r);
	router_keys_added(r);
}

void router_set_server(struct router *r, struct http_server *server)
{
	r->server = server;
	r->expiry = timer_new(r->parts.loop, on_expiry, r);
	router_keys_added(r);
}

/* The name in "name", "name:port", "[v6]" or "[v6]:port". Return: 0 or -1: malformed. */
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

static bool is_in_list(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcasecmp(*list, name) == 0)
			return true;
	return false;
}

/* Unlike a name, an address cannot be made to mean another host: where the daemon listens for other
 * hosts, any address is accepted. */
static bool is_own_name(const struct config *config, const char *name)
{
	struct in6_addr in6;
	struct in_addr in;

	if (is_loopback_name(name) || is_in_list(config->allowed_hosts, name))
		return true;
	return config->listen && config->listen[0] && !http_address_is_loopback(config->listen) &&
	       (inet_pton(AF_INET, name, &in) == 1 || inet_pton(AF_INET6, name, &in6) == 1);
}

/* A page that this daemon served: its origin is the name and port in Host, which was checked. */
static bool is_own_origin(const char *host, const char *origin)
{
	const char *rest = str_has_prefix(origin, "http://")    ? origin + 7
	                   : str_has_prefix(origin, "https://") ? origin + 8
	                                                        : NULL;

	return host && rest && strcasecmp(host, rest) == 0;
}

int router_check_source(const struct config *config, bool any_host, const char *host,
                        const char *origin, const char *site, struct error *err)
{
	char name[HOST_MAX_LEN + 1];

	if (!any_host && !host)
		return error_set(err, ERR_FORBIDDEN, 0, "Host is missing");
	if (!any_host && (host_name(host, name) < 0 || !is_own_name(config, name)))
		return error_set(err, ERR_FORBIDDEN, 0,
		                 "Host '%.100s' is not a name of this daemon: allowed_hosts does "
		                 "not list it",
		                 host);
	if (origin && (any_host || !is_own_origin(host, origin)) &&
	    !is_in_list(config->allowed_origins, origin))
		return error_set(err, ERR_FORBIDDEN, 0,
		                 "Origin is not allowed: allowed_origins does not list it");
	/* Browsers send Sec-Fetch-Site with every request, also with those of images and links,
	 * which have no Origin. "none": the user typed the address. */
	if (!origin && site && strcasecmp(site, "same-origin") != 0 &&
	    strcasecmp(site, "none") != 0)
		return error_set(err, ERR_FORBIDDEN, 0,
		                 "pages of other sites may not use this daemon (Sec-Fetch-Site)");
	return 0;
}

bool router_is_json(const char *value)
{
	static const char type[] = "application/json", charset[] = "charset=", blanks[] = " \t";
	const char *s;

	if (!value)
		return false;
	s = value + strspn(value, blanks);
	if (strncasecmp(s, type, sizeof(type) - 1) != 0)
		return false;
	s += sizeof(type) - 1;
	s += strspn(s, blanks);
	if (s[0] == '\0')
		return true;
	if (s[0] != ';')
		return false;
	s += 1 + strspn(s + 1, blanks);
	if (strncasecmp(s, charset, sizeof(charset) - 1) != 0)
		return s[0] == '\0';
	s += sizeof(charset) - 1;
	return strcasecmp(s, "utf-8") == 0 || strcasecmp(s, "\"utf-8\"") == 0;
}

static int check_route(const struct router *r, const struct route *route, struct http_request *req,
                       struct error *err)
{
	if (http_is_crowded(req) && !route->always)
		return error_later(err, ERR_BUSY, ERROR_SOON_US, "too many connections");
	if (route->body == ROUTE_BODY_JSON && !router_is_json(http_header(req, "Content-Type")))
		return error_set(err, ERR_BAD_MEDIA, 0, "Content-Type must be application/json");
	/* Where an audit log is required, nothing changes that cannot be logged. */
	return str_equal(route->method, "GET") ? 0 : audit_check(r->parts.audit, err);
}

static int refuse_request(struct http_request *req, const struct error *err, const char *allow)
{
	if (err->code == ERR_BAD_METHOD)
		reply_not_allowed(req, err, allow);
	else
		reply_error(req, err);
	return -1;
}

static struct route_args args_of(const struct route *route, struct http_request *req)
{
	struct route_args args;

	(void)route_parse(route->path, http_path(req), &args);
	args.principal = auth_principal(req);
	args.query = route->query;
	args.warnings = route->upstream ? reply_warnings(req) : NULL;
	return args;
}

/* The route and dialect stay with the request. NULL with *err: none. */
static const struct route *find_route(const struct router *r, struct http_request *req,
                                      char ret_allow[ROUTE_ALLOW_LEN], struct error *err)
{
	struct route_match match;

	if (route_find(r->parts.dialects, http_method(req), http_path(req), &match, ret_allow,
	               err) < 0)
		return NULL;
	http_set_tag(req, REQUEST_TAG_ROUTE, (uintptr_t)match.route);
	http_set_tag(req, REQUEST_TAG_DIALECT, (uintptr_t)match.dialect);
	return match.route;
}

/*
 * Browsers do not use Unix sockets, and other clients send any Host there. Load balancers check a
 * route that reveals nothing by a name of their own.
 */
static bool takes_any_host(const struct router *r, struct http_request *req)
{
	struct route_match match;
	char allow[ROUTE_ALLOW_LEN];
	struct error ignored = {0};

	return http_is_unix(req) || (route_find(r->parts.dialects, http_method(req), http_path(req),
	                                        &match, allow, &ignored) == 0 &&
	                             match.route->any_host);
}

static int on_headers(void *ctx, struct http_request *req, size_t *ret_max_body)
{
	struct router *r = ctx;
	const struct route *route;
	char allow[ROUTE_ALLOW_LEN] = "";
	struct error err = {0};

	/* For errors before a row is found. */
	http_set_tag(req, REQUEST_TAG_DIALECT,
	             (uintptr_t)route_dialect(r->parts.dialects, http_path(req)));
	if (router_check_source(r->config, takes_any_host(r, req), http_header(req, "Host"),
	                        http_header(req, "Origin"), http_header(req, "Sec-Fetch-Site"),
	                        &err) < 0)
		return refuse_request(req, &err, allow);
	if (cors_handle(r, req))
		return -1;
	route = find_route(r, req, allow, &err);
	if (auth_check(r, req, route) < 0)
		return -1;
	if (!route || check_route(r, route, req, &err) < 0)
		return refuse_request(req, &err, allow);
	*ret_max_body = route->body == ROUTE_BODY_NONE ? 0 : r->config->max_body_bytes;
	if (*ret_max_body > 0)
		http_set_body_quota(req, auth_principal(req)->tenant);
	/* The handler answers, or takes the body. */
	if (route->body == ROUTE_BODY_STREAM) {
		const struct route_args args = args_of(route, req);

		route->handle(r, req, &args);
	}
	return 0;
}

static void handle_request(void *ctx, struct http_request *req)
{
	const struct route *route = (const struct route *)http_tag(req, REQUEST_TAG_ROUTE);
	const struct route_args args = args_of(route, req);
	struct router *r = ctx;
	struct error err = {0};
	size_t len;
	const char *body = http_body(req, &len);

	/* A caller must not believe that its body was read. */
	if (route->body == ROUTE_BODY_OPTIONAL &&
	    decode_nothing(body, len, args.warnings, &err) < 0)
		reply_error(req, &err);
	else if (auth_holds(r, args.principal, &err) < 0)
		reply_unauthenticated(req, &err);
	else
		lookup_then_handle(r, req, route, &args);
}

static void on_request(void *ctx, struct http_request *req)
{
	struct router *r = ctx;

	turns_enter(r->turns, req, auth_principal(req)->tenant, clock_us());
}

/* The server's own errors, perhaps before on_headers. */
static void on_error(void *ctx, struct http_request *req, const struct error *err)
{
	struct router *r = ctx;

	if (!dialect_of(req))
		http_set_tag(req, REQUEST_TAG_DIALECT,
		             (uintptr_t)route_dialect(r->parts.dialects, http_path(req)));
	reply_error(req, err);
}

struct http_handlers router_handlers(struct router *r)
{
	return (struct http_handlers){
		.ctx = r,
		.on_headers = on_headers,
		.on_request = on_request,
		.on_error = on_error,
		.on_done = access_log_done,
	};
}
