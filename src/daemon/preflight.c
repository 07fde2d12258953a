/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/preflight.h"

#include "api/tools/tool.h"
#include "base/attr.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/identity/identity.h"
#include "core/policy/policies.h"
#include "http/server.h"
#include <errno.h>
#include <pwd.h>
#include <unistd.h>

/* Before anyone can connect. */
int preflight_keys(const struct config *c, const struct identity *identity, struct error *err)
{
	if (!c->listen[0] || http_address_is_loopback(c->listen))
		return 0;
	if (!identity_has_keys(identity))
		return error_set(
			err, ERR_CONFIG, 0,
			"refusing to listen on %s: it is not loopback, and without keys anyone "
			"there could run code. Create a key first: 'milliboxd --create-key', or "
			"'millibox key create' while it listens on loopback",
			c->listen);
	if (!c->tls_cert[0])
		log_warn("listening on %s without TLS: keys and code go over the network in the "
		         "clear",
		         c->listen);
	return 0;
}

/* A missing path is a wrong setting, not an unsuitable host. */
int preflight_programs(const struct config *c, struct error *err)
{
	const struct {
		const char *key, *path;
	} places[] = {
		{"engine_path", c->engine_path},
		{"agent_path", c->agent_path},
		{"runners_dir", c->runners_dir},
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i].path, F_OK) < 0)
			return error_set(err, ERR_CONFIG, errno, "%s: %s", places[i].key,
			                 places[i].path);
	return 0;
}

const struct passwd *preflight_user(const char *user)
{
	errno = 0;
	return getpwnam(user);
}

struct policies *preflight_policies(const struct config *c, const char *const *files,
                                    struct error *err)
{
	const struct policies_config config = {.dir = c->policy_dir,
	                                       .fallback = c->policy_default,
	                                       .selectable = c->policy_selectable,
	                                       .files = files};

	return policies_load(&config, err);
}

int preflight_check_policies(const struct config *c, const char *const *files, struct error *err)
{
	attr_cleanup(policies_freep) struct policies *policies = preflight_policies(c, files, err);

	return policies ? 0 : -1;
}

int preflight_settings(const struct config *c, struct error *err)
{
	if (c->user[0] && !preflight_user(c->user))
		return error_set(err, ERR_CONFIG, errno, "user: there is no user '%s'", c->user);
	if (!c->tls_cert[0] != !c->tls_key[0])
		return error_set(err, ERR_CONFIG, 0, "tls.cert and tls.key: set both or neither");
	if (c->tls_cert[0] && !c->listen[0])
		return error_set(err, ERR_CONFIG, 0, "tls.cert: no TCP address is set");
	if (tools_check(c, err) < 0)
		return -1;
	if (!c->listen[0] && !c->socket[0])
		return error_set(err, ERR_CONFIG, 0, "nothing to serve: set listen or socket");
	return 0;
}

int preflight_listen_failed(const struct config *c, struct error *err)
{
	if (err->sys != EADDRINUSE)
		return -1;
	error_clear(err);
	return error_set(err, ERR_CONFIG, 0,
	                 "%s is in use by another program; choose another with --listen ADDR:PORT",
	                 c->listen);
}
