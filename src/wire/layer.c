/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/layer.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

#define IN_CONTAINER                                                                               \
	"inside a container, run Millibox on the host, or give the container the privileges of "   \
	"docs/containers.md"
#define KERNEL_OPTION(name)                                                                        \
	"use a kernel with " name "=y (distribution kernels have it); " IN_CONTAINER
#define NEWER_KERNEL "use kernel 5.12 or newer; Debian 12 has 6.1"
/* Of layers that are control groups: see group_remedies. */
#define GROUPS ""

/* clang-format off */
static const struct {
	const char *name, *loss, *remedy;
} layers[] = {
	[LAYER_USER] = {"user", "root inside the box is root of the host", "start milliboxd as root, or let the user create user namespaces ('millibox doctor' names the setting); " IN_CONTAINER},
	[LAYER_PID] = {"pid", "host processes can be seen and signalled", KERNEL_OPTION("CONFIG_PID_NS")},
	[LAYER_MNT] = {"mnt", "the host's files can be reached", KERNEL_OPTION("CONFIG_NAMESPACES")},
	[LAYER_NET] = {"net", "the host's network can be reached", KERNEL_OPTION("CONFIG_NET_NS")},
	[LAYER_IPC] = {"ipc", "shared memory and queues of the host can be reached", KERNEL_OPTION("CONFIG_IPC_NS")},
	[LAYER_UTS] = {"uts", "the host's name is shown", KERNEL_OPTION("CONFIG_UTS_NS")},
	[LAYER_CGROUP_NS] = {"cgroup", "the box's place among the host's groups is shown", KERNEL_OPTION("CONFIG_CGROUPS")},
	[LAYER_TIME] = {"time", "the host's uptime is shown", KERNEL_OPTION("CONFIG_TIME_NS")},
	[LAYER_CGROUP_MEMORY] = {"cgroup.memory", "memory is limited per process, not for the box", GROUPS},
	[LAYER_CGROUP_PIDS] = {"cgroup.pids", "processes are counted per user, not for the box", GROUPS},
	[LAYER_CGROUP_CPU] = {"cgroup.cpu", "a box can use every core there is", GROUPS},
	[LAYER_UID_RANGE] = {"uid_range", "agent, payload and other boxes share one host user", "start milliboxd as root, or give the user subordinate ids: sudo apt install uidmap && sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $USER"},
	[LAYER_CAPS] = {"caps", "the program keeps capabilities", NEWER_KERNEL},
	[LAYER_NO_NEW_PRIVS] = {"no_new_privs", "a setuid program can raise privilege", NEWER_KERNEL},
	[LAYER_SECCOMP] = {"seccomp", "every system call of the kernel can be attacked", KERNEL_OPTION("CONFIG_SECCOMP_FILTER")},
	[LAYER_LANDLOCK] = {"landlock", "file access has one barrier less, images cannot be imported", "use a kernel with CONFIG_SECURITY_LANDLOCK=y and add landlock to its lsm= parameter; cat /sys/kernel/security/lsm shows the current list"},
	[LAYER_RLIMITS] = {"rlimits", "files, descriptors and core dumps are not bounded", "start milliboxd with hard limits no lower than those of a box; ulimit -H -a shows them"},
	[LAYER_CGROUP_IO] = {"cgroup.io", "a tenant can use the whole speed of a disk", "set limits.io and limits.io_ops; start milliboxd as root, or with its systemd unit; the kernel needs CONFIG_BLK_DEV_THROTTLING=y"},
};
/* clang-format on */
static_assert(ARRAY_SIZE(layers) == LAYER_COUNT, "every layer has a row");

const char *layer_name(enum wire_layer layer)
{
	return (unsigned)layer < LAYER_COUNT ? layers[layer].name : "?";
}

const char *layer_loss(enum wire_layer layer)
{
	return (unsigned)layer < LAYER_COUNT ? layers[layer].loss : "?";
}

enum layer_starter layer_starter(bool is_root, enum systemd_delegation delegation)
{
	static const enum layer_starter starters[SYSTEMD_DELEGATION_COUNT] = {
		[SYSTEMD_NONE] = LAYER_STARTER_USER,
		[SYSTEMD_V1] = LAYER_STARTER_UNIT,
		[SYSTEMD_NO_MANAGER] = LAYER_STARTER_LINGER,
		[SYSTEMD_NO_PROGRAM] = LAYER_STARTER_UNIT,
		[SYSTEMD_DELEGATES] = LAYER_STARTER_SCOPE,
	};

	return is_root ? LAYER_STARTER_ROOT : starters[delegation];
}

/* A '%' is the path of the daemon. */
static const char *const group_remedies[LAYER_STARTER_COUNT] = {
	[LAYER_STARTER_ROOT] = "mount the control groups writable; " IN_CONTAINER,
	[LAYER_STARTER_SCOPE] = "systemd-run --user --scope -p Delegate=yes %",
	[LAYER_STARTER_LINGER] = "sudo loginctl enable-linger $(id -un) && "
				 "XDG_RUNTIME_DIR=/run/user/$(id -u) "
				 "systemd-run --user --scope -p Delegate=yes %",
	[LAYER_STARTER_UNIT] = "start milliboxd as root, or with its systemd unit",
	[LAYER_STARTER_USER] = "start milliboxd as root",
};

void layer_remedy(enum wire_layer layer, enum layer_starter starter, const char *daemon,
                  char ret_text[LAYER_REMEDY_MAX])
{
	const char *text = (unsigned)layer < LAYER_COUNT ? layers[layer].remedy : "?";
	size_t len;

	if (!*text)
		text = group_remedies[starter];
	len = strcspn(text, "%");
	/* Only a path can be too long. */
	(void)snprintf(ret_text, LAYER_REMEDY_MAX, "%.*s%s%s", (int)len, text,
	               text[len] ? daemon : "", text[len] ? text + len + 1 : "");
}
