/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <errno.h>
#include <stddef.h>

#include "base/str.h"
#include "wire/layer.h"

#define KERNEL_OPTION(name)                                                                        \
	"use a kernel with " name "=y (distribution kernels have it); inside a container, run "    \
	"Millibox on the host or in a privileged container"
#define NEWER_KERNEL "use kernel 5.12 or newer; Debian 12 has 6.1"
#define USER_NAMESPACES                                                                            \
	"start milliboxd as root, or allow user namespaces: sysctl -w "                            \
	"user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1; inside a container, "  \
	"run Millibox on the host or in a privileged container"
#define DELEGATE                                                                                   \
	"start milliboxd as root, or with its systemd unit; as an ordinary user: "                 \
	"systemd-run --user --scope -p Delegate=yes milliboxd"

/*
 * Names are those of 'millibox-engine --probe'. A layer's loss is NULL: results and doctor share
 * wire/layer's text. Needs are those of the native driver in strict mode.
 */
/* clang-format off */
static const struct advice advices[] = {
	/* layers */
	{"user", NEED_ALWAYS, NULL, USER_NAMESPACES},
	{"pid", NEED_ALWAYS, NULL, KERNEL_OPTION("CONFIG_PID_NS")},
	{"mnt", NEED_ALWAYS, NULL, KERNEL_OPTION("CONFIG_NAMESPACES")},
	{"net", NEED_ALWAYS, NULL, KERNEL_OPTION("CONFIG_NET_NS")},
	{"ipc", NEED_ALWAYS, NULL, KERNEL_OPTION("CONFIG_IPC_NS")},
	{"uts", NEED_ALWAYS, NULL, KERNEL_OPTION("CONFIG_UTS_NS")},
	{"cgroup", NEED_AS_ROOT, NULL, KERNEL_OPTION("CONFIG_CGROUPS")},
	{"time", NEED_NEVER, NULL, KERNEL_OPTION("CONFIG_TIME_NS")},
	{"uid_range", NEED_AS_ROOT, NULL, "start milliboxd as root, or give the user subordinate ids: apt install uidmap && usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $USER"},
	{"cgroup.memory", NEED_AS_ROOT, NULL, DELEGATE},
	{"cgroup.pids", NEED_AS_ROOT, NULL, DELEGATE},
	{"cgroup.cpu", NEED_AS_ROOT, NULL, DELEGATE},
	{"caps", NEED_ALWAYS, NULL, NEWER_KERNEL},
	{"no_new_privs", NEED_ALWAYS, NULL, NEWER_KERNEL},
	{"seccomp", NEED_ALWAYS, NULL, KERNEL_OPTION("CONFIG_SECCOMP_FILTER")},
	{"landlock", NEED_NEVER, NULL, "use a kernel with CONFIG_SECURITY_LANDLOCK=y and add landlock to its lsm= parameter; cat /sys/kernel/security/lsm shows the current list"},
	{"rlimits", NEED_ALWAYS, NULL, "start milliboxd with hard limits no lower than those of a box; ulimit -H -a shows them"},
	/* kernel features the engine needs */
	{"procfs", NEED_ALWAYS, "boxes cannot be built: their processes would have no /proc", "run Millibox on the host, or in a container whose /proc is not masked (docker run --privileged, or --security-opt systempaths=unconfined)"},
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

static const char *loss_of_layer(const char *name)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		if (str_equal(layer_name((enum wire_layer)i), name))
			return layer_loss((enum wire_layer)i);
	}
	return NULL;
}

int advice_find(const char *name, struct advice *ret_advice)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (!str_equal(advices[i].name, name))
			continue;
		*ret_advice = advices[i];
		if (!ret_advice->loss)
			ret_advice->loss = loss_of_layer(name);
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

static bool is_needed(const struct advice *advice, bool is_root)
{
	return advice->need == NEED_ALWAYS || (advice->need == NEED_AS_ROOT && is_root);
}

bool check_is_optional(const struct check *check, bool is_root)
{
	struct advice advice;

	return check->state == CHECK_MISSING && loss_of_layer(check->name) &&
	       advice_find(check->name, &advice) == 0 && !is_needed(&advice, is_root);
}

bool checks_are_strict(const struct checks *checks, bool is_root)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		const struct check *check = checks_find(checks, advices[i].name);

		if (!is_needed(&advices[i], is_root))
			continue;
		/* A check not printed counts as missing. */
		if (!check || check->state != CHECK_OK)
			return false;
	}
	return true;
}
