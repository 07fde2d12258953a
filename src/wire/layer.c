/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/layer.h"

#include "base/attr.h"

#define KERNEL_OPTION(name)                                                                        \
	"use a kernel with " name "=y (distribution kernels have it); inside a container, run "    \
	"Millibox on the host or in a privileged container"
#define NEWER_KERNEL "use kernel 5.12 or newer; Debian 12 has 6.1"
#define DELEGATE                                                                                   \
	"start milliboxd as root, or with its systemd unit; as an ordinary user: "                 \
	"systemd-run --user --scope -p Delegate=yes milliboxd"

/* clang-format off */
static const struct {
	const char *name, *loss, *remedy;
} layers[] = {
	[LAYER_USER] = {"user", "root inside the box is root of the host", "start milliboxd as root, or allow user namespaces: sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1; inside a container, run Millibox on the host or in a privileged container"},
	[LAYER_PID] = {"pid", "host processes can be seen and signalled", KERNEL_OPTION("CONFIG_PID_NS")},
	[LAYER_MNT] = {"mnt", "the host's files can be reached", KERNEL_OPTION("CONFIG_NAMESPACES")},
	[LAYER_NET] = {"net", "the host's network can be reached", KERNEL_OPTION("CONFIG_NET_NS")},
	[LAYER_IPC] = {"ipc", "shared memory and queues of the host can be reached", KERNEL_OPTION("CONFIG_IPC_NS")},
	[LAYER_UTS] = {"uts", "the host's name is shown", KERNEL_OPTION("CONFIG_UTS_NS")},
	[LAYER_CGROUP_NS] = {"cgroup", "the box's place among the host's groups is shown", KERNEL_OPTION("CONFIG_CGROUPS")},
	[LAYER_TIME] = {"time", "the host's uptime is shown", KERNEL_OPTION("CONFIG_TIME_NS")},
	[LAYER_CGROUP_MEMORY] = {"cgroup.memory", "memory is limited per process, not for the box", DELEGATE},
	[LAYER_CGROUP_PIDS] = {"cgroup.pids", "processes are counted per user, not for the box", DELEGATE},
	[LAYER_CGROUP_CPU] = {"cgroup.cpu", "a box can use every core there is", DELEGATE},
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

const char *layer_remedy(enum wire_layer layer)
{
	return (unsigned)layer < LAYER_COUNT ? layers[layer].remedy : "?";
}
