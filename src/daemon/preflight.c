/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/preflight.h"

#include "api/tools/tool.h"
#include "base/attr.h"
#include "base/log.h"
#include "base/parse.h"
#include "bridge/range.h"
#include "core/config/config.h"
#include "core/identity/identity_row.h"
#include "core/policy/policies.h"
#include "daemon/bridge_setup.h"
#include "daemon/tls_files.h"
#include "http/server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

int preflight_keys(const struct config *c, bool has_keys, struct error *err)
{
	if (!c->listen[0] || http_address_is_loopback(c->listen))
		return 0;
	if (!has_keys)
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

/* The engine accepts one more: runners_dir. */
#define RUNNER_DIRS_MAX 7

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
	for (char **dir = c->runner_dirs; dir && *dir; dir++) {
		if (**dir != '/' || access(*dir, F_OK) < 0)
			return error_set(
				err, ERR_CONFIG, **dir == '/' ? errno : 0,
				"runners.dirs: '%s' must be an absolute path of a directory", *dir);
		if (dir - c->runner_dirs == RUNNER_DIRS_MAX)
			return error_set(err, ERR_CONFIG, 0, "runners.dirs: at most %d directories",
			                 RUNNER_DIRS_MAX);
	}
	return 0;
}

/* NULL: unknown, with errno if the lookup failed. */
static const struct passwd *find_user(const char *user)
{
	errno = 0;
	return getpwnam(user);
}

int preflight_ids(const struct config *c, uid_t reserved, uid_t *ret_uid, gid_t *ret_gid,
                  struct error *err)
{
	const struct passwd *pw;

	*ret_uid = *ret_gid = reserved;
	if (c->user[0]) {
		pw = find_user(c->user);
		if (!pw)
			return error_set(err, ERR_CONFIG, errno, "no user '%s'", c->user);
		*ret_uid = pw->pw_uid;
		*ret_gid = pw->pw_gid;
	}
	if (*ret_uid == 0 || *ret_gid == 0)
		return error_set(err, ERR_CONFIG, 0, "no user to switch to from root: set user");
	return 0;
}

int preflight_socket_group(const struct config *c, gid_t *ret_gid, struct error *err)
{
	const struct group *group;
	uint64_t number;

	*ret_gid = (gid_t)-1;
	if (!c->socket_group[0])
		return 0;
	if (parse_u64(c->socket_group, &number) == 0) {
		if (number >= (gid_t)-1)
			return error_set(err, ERR_CONFIG, 0, "socket_group: %s is not a group id",
			                 c->socket_group);
		*ret_gid = (gid_t)number;
		return 0;
	}
	errno = 0;
	group = getgrnam(c->socket_group);
	if (!group)
		return error_set(err, ERR_CONFIG, errno, "socket_group: there is no group '%s'",
		                 c->socket_group);
	*ret_gid = group->gr_gid;
	return 0;
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

static int check_resolvers(char *const *list, struct error *err)
{
	for (size_t count = 0; list && *list; list++) {
		struct in6_addr ignored;

		if (++count > BRIDGE_RANGES_MAX)
			return error_set(err, ERR_CONFIG, 0, "host_network.resolvers: at most %d",
			                 BRIDGE_RANGES_MAX);
		if (inet_pton(AF_INET, *list, &ignored) != 1 &&
		    inet_pton(AF_INET6, *list, &ignored) != 1)
			return error_set(err, ERR_CONFIG, 0,
			                 "host_network.resolvers: '%.64s' is not an address",
			                 *list);
	}
	return 0;
}

int preflight_settings(const struct config *c, struct error *err)
{
	gid_t gid;

	if (c->user[0] && !find_user(c->user))
		return error_set(err, ERR_CONFIG, errno, "user: there is no user '%s'", c->user);
	if (!c->tls_cert[0] != !c->tls_key[0])
		return error_set(err, ERR_CONFIG, 0, "tls.cert and tls.key: set both or neither");
	if (c->tls_cert[0] && !c->listen[0])
		return error_set(err, ERR_CONFIG, 0, "tls.cert: no TCP address is set");
	if (c->socket_group[0] && !c->socket[0])
		return error_set(err, ERR_CONFIG, 0, "socket_group: no Unix socket is set");
	if (preflight_socket_group(c, &gid, err) < 0)
		return -1;
	if (tools_check(c, err) < 0 || bridge_setup_check(c, err) < 0 ||
	    check_resolvers(c->host_network_resolvers, err) < 0)
		return -1;
	if (!c->listen[0] && !c->socket[0])
		return error_set(err, ERR_CONFIG, 0, "nothing to serve: set listen or socket");
	return 0;
}

int preflight_reach(const struct config *c, struct error *err)
{
	struct tls_files tls;
	bool has_keys;

	if (tls_files_load(c, &tls, err) < 0)
		return -1;
	tls_files_done(&tls);
	if (!c->listen[0] || http_address_is_loopback(c->listen))
		return 0;
	return identity_row_any_key(c->state_dir, &has_keys, err) < 0
	               ? -1
	               : preflight_keys(c, has_keys, err);
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

uid_t preflight_own_id(const struct config *config, uid_t reserved)
{
	struct error err = {0};
	uid_t uid;
	gid_t gid;

	return geteuid() == 0 && preflight_ids(config, reserved, &uid, &gid, &err) == 0 ? uid
	                                                                                : geteuid();
}
