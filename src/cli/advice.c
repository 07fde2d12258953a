/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <errno.h>
#include <stddef.h>

#include "base/str.h"
#include "wire/layer.h"

#define NEWER_KERNEL "use kernel 5.12 or newer; Debian 12 has 6.1"

/* Names are those of 'millibox-engine --probe'. Layers have theirs in wire/layer, which results and
 * the daemon's log share. */
/* clang-format off */
static const struct advice advices[] = {
	/* kernel features the engine needs */
	{"procfs", NEED_ALWAYS, "boxes cannot be built: their processes would have no /proc", "run Millibox on the host, or in a container whose /proc is not masked (docker run --security-opt systempaths=unconfined, see docs/containers.md)"},
	{"tmpfs_inodes", NEED_ALWAYS, "boxes cannot be built: the number of files could not be limited", NEWER_KERNEL},
	{"mount_api", NEED_ALWAYS, "boxes cannot be built: mounts could not be cloned", NEWER_KERNEL},
	{"openat2", NEED_ALWAYS, "boxes cannot be built: paths could escape a directory", NEWER_KERNEL},
	{"pidfd", NEED_ALWAYS, "boxes cannot be built: their exit could not be detected", NEWER_KERNEL},
	{"clone3", NEED_ALWAYS, "boxes cannot be built", NEWER_KERNEL},
	{"seccomp_notify", NEED_NEVER, "results do not list denied system calls", NEWER_KERNEL},
	/* causes of the above */
	{"max_user_namespaces", NEED_NEVER, "user namespaces cannot be created", "sysctl -w user.max_user_namespaces=15000"},
	{"apparmor_userns", NEED_NEVER, "an ordinary user cannot build boxes", "start milliboxd as root, or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	/* runtimes */
	{"runtime.python", NEED_NEVER, "Python programs cannot run", "apt install python3"},
	{"runtime.shell", NEED_NEVER, "shell programs cannot run", "apt install bash"},
};
/* clang-format on */

#define ADVICES_COUNT (LAYER_COUNT + ARRAY_SIZE(advices))

/* Layers first, then the table. */
static struct advice advice_at(size_t i)
{
	enum wire_layer layer = (enum wire_layer)i;
	enum check_need need = NEED_NEVER;

	if (i >= LAYER_COUNT)
		return advices[i - LAYER_COUNT];
	if (LAYER_BIT(i) & LAYERS_STRICT)
		need = LAYER_BIT(i) & LAYERS_BEST_EFFORT ? NEED_ALWAYS : NEED_STRICT;
	return (struct advice){layer_name(layer), need, layer_loss(layer), layer_remedy(layer)};
}

int advice_find(const char *name, struct advice *ret_advice)
{
	for (size_t i = 0; i < ADVICES_COUNT; i++) {
		*ret_advice = advice_at(i);
		if (str_equal(ret_advice->name, name))
			return 0;
	}
	return -ENOENT;
}

int checks_advise(const struct checks *checks, const struct check *check, struct advice *ret_advice)
{
	const struct check *user = checks_find(checks, "user");
	int r = advice_find(check->name, ret_advice);

	if (r >= 0 && user && user != check && user->state == CHECK_MISSING &&
	    check->state == CHECK_MISSING && str_equal(user->value, check->value))
		ret_advice->remedy = "see 'user': without it this could not be tested";
	return r;
}

static bool is_layer(const char *name)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (str_equal(layer_name((enum wire_layer)i), name))
			return true;
	return false;
}

bool check_is_optional(const struct check *check)
{
	struct advice advice;

	return check->state == CHECK_MISSING && is_layer(check->name) &&
	       advice_find(check->name, &advice) == 0 && advice.need == NEED_NEVER;
}

bool checks_meet(const struct checks *checks, enum check_need need)
{
	for (size_t i = 0; i < ADVICES_COUNT; i++) {
		struct advice advice = advice_at(i);
		const struct check *check = checks_find(checks, advice.name);

		/* A check not printed counts as missing. */
		if (advice.need >= need && (!check || check->state != CHECK_OK))
			return false;
	}
	return true;
}
