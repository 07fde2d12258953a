/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include "api/internal.h"
#include "api/reply.h"
#include "base/clock.h"
#include "core/identity/identity.h"
#include "core/identity/key.h"
#include "core/tenant/tenant.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Authentication is off: all scopes of the default tenant. */
static const struct principal anonymous = {.tenant = TENANT_DEFAULT, .scopes = SCOPES_ALL};

const struct principal *auth_principal(const struct http_request *req)
{
	const struct principal *p = (const struct principal *)http_tag(req, REQUEST_TAG_PRINCIPAL);

	return p ? p : &anonymous;
}

/* A page cannot add headers to a WebSocket, only names of protocols: there the key may be one of
 * them, "millibox.key.KEY". Addresses are no place for it, because others read them. Return: number
 * of such names; the first one's key, or what stands for it, in @ret_key. */
static size_t read_offered_key(const struct http_request *req, char *ret_key, size_t size)
{
	static const char prefix[] = "millibox.key.";
	const char *list = http_header(req, "Sec-WebSocket-Protocol");
	size_t found = 0, len;

	if (!http_header(req, "Sec-WebSocket-Key"))
		return 0;
	for (; list && *(list += strspn(list, ", \t")); list += len) {
		len = strcspn(list, ", \t");
		if (len < strlen(prefix) || strncmp(list, prefix, strlen(prefix)) != 0)
			continue;
		/* Truncated: one byte too long to be a key. */
		if (found++ == 0)
			(void)snprintf(ret_key, size, "%.*s", (int)(len - strlen(prefix)),
			               list + strlen(prefix));
	}
	return found;
}

static const struct principal *authenticate(struct router *r, struct http_request *req,
                                            struct error *err)
{
	char offered[KEY_TEXT_LEN + 2];
	size_t count = read_offered_key(req, offered, sizeof(offered));
	struct identity_request request = {
		.authorization = http_header(req, "Authorization"),
		.api_key = http_header(req, "X-API-Key"),
		.repeated = http_header_count(req, "Authorization") > 1 ||
	                    http_header_count(req, "X-API-Key") > 1 || count > 1,
		.peer = http_peer(req),
		.now_us = clock_us(),
	};
	const struct principal *p;

	if (count > 0 && request.api_key)
		request.repeated = true;
	else if (count > 0)
		request.api_key = offered;
	request.is_unix = http_is_unix(req);
	request.has_uid = http_peer_uid(req, &request.uid) == 0;
	p = identity_authenticate(r->parts.identity, &request, err);
	explicit_bzero(offered, sizeof(offered));
	return p;
}

const struct principal *auth_ask(struct router *r, struct http_request *req)
{
	struct error err = {0}; /* a wrong key is ignored here, but counted */

	return r->parts.identity ? authenticate(r, req, &err) : &anonymous;
}

static int check_scope(const struct principal *p, const struct route *route, struct error *err)
{
	enum scope needed = route ? route->scope : SCOPE_ANY;
	const char *name;

	if (scope_allows(p->scopes, needed))
		return 0;
	name = scope_name(needed);
	return error_set(err, ERR_NO_SCOPE, 0, "this request needs scope %s%s",
	                 name ? name : "admin",
	                 p->key_id ? ""
	                           : "; without a key only root and the user who started the "
	                             "daemon have it, at the Unix socket");
}

static void refuse_request(struct http_request *req, const struct error *err)
{
	if (err->code == ERR_UNAUTHENTICATED)
		reply_unauthenticated(req, err);
	else
		reply_error(req, err);
}

int auth_check(struct router *r, struct http_request *req, const struct route *route)
{
	const struct principal *p;
	struct error err = {0};
	uint64_t wait_us = 0;
	struct tenant *t;

	if (route && route->scope == SCOPE_PUBLIC)
		return 0;
	if (!r->parts.identity) { /* authentication is off */
		http_set_known(req, anonymous.tenant);
		return 0;
	}
	p = authenticate(r, req, &err);
	/* Also if refused: the logs name the caller. */
	http_set_tag(req, REQUEST_TAG_PRINCIPAL, (uintptr_t)p);
	if (p)
		http_set_known(req, p->tenant);
	if (p && check_scope(p, route, &err) == 0) {
		t = r->parts.tenants ? tenants_find(r->parts.tenants, p->tenant) : NULL;
		if (tenant_take_request(t, clock_us(), &wait_us, &err) == 0)
			return 0;
	}
	refuse_request(req, &err);
	return -1;
}

int auth_holds(struct router *r, const struct principal *p, struct error *err)
{
	if (!r->parts.identity || identity_key_holds(r->parts.identity, p->key_id))
		return 0;
	return error_set(err, ERR_UNAUTHENTICATED, 0,
	                 "the key was revoked or expired during the request");
}
