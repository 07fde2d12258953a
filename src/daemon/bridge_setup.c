/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/bridge_setup.h"

#include "base/alloc.h"
#include "bridge/range.h"
#include "core/config/config.h"
#include <libgen.h>
#include <unistd.h>

static int check_list(char *const *list, const char *key,
                      int (*parse)(const char *text, struct cidr *ret, struct error *err),
                      struct error *err)
{
	struct cidr ignored;
	size_t count = 0;

	for (; list && *list; list++) {
		if (++count > BRIDGE_RANGES_MAX)
			return error_set(err, ERR_CONFIG, 0, "%s: at most %d", key,
			                 BRIDGE_RANGES_MAX);
		if (parse(*list, &ignored, err) < 0)
			return error_wrap(err, "%s", key);
	}
	return 0;
}

int bridge_setup_check(const struct config *c, struct error *err)
{
	char *const subnet[] = {c->bridge_subnet, NULL};

	if (check_list(subnet, "bridge.subnet", bridge_parse_subnet, err) < 0 ||
	    check_list(c->bridge_allow, "bridge.allow", bridge_parse_range, err) < 0 ||
	    check_list(c->bridge_resolvers, "bridge.resolvers", bridge_parse_resolver, err) < 0)
		return -1;
	if (c->bridge_enabled && geteuid() != 0)
		return error_set(err, ERR_CONFIG, 0,
		                 "bridge.enabled: only root can connect boxes to the host's "
		                 "network: use network mode allowlist");
	return 0;
}

char *bridge_setup_path(const struct config *c)
{
	cleanup_free char *copy = xstrdup(c->engine_path);

	return c->bridge_enabled ? xasprintf("%s/millibox-bridge", dirname(copy)) : NULL;
}
