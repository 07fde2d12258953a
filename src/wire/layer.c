/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/layer.h"

#include "base/attr.h"

/* A macro, because clang-format aligns designated rows badly. */
#define LAYER_ROW(layer_, name_, loss_) [LAYER_##layer_] = {.name = (name_), .loss = (loss_)}

static const struct {
	const char *name, *loss;
} layers[] = {
	LAYER_ROW(USER, "user", "root inside the box is root of the host"),
	LAYER_ROW(PID, "pid", "host processes can be seen and signalled"),
	LAYER_ROW(MNT, "mnt", "the host's files can be reached"),
	LAYER_ROW(NET, "net", "the host's network can be reached"),
	LAYER_ROW(IPC, "ipc", "shared memory and queues of the host can be reached"),
	LAYER_ROW(UTS, "uts", "the host's name is shown"),
	LAYER_ROW(CGROUP_NS, "cgroup", "the box's place among the host's groups is shown"),
	LAYER_ROW(TIME, "time", "the host's uptime is shown"),
	LAYER_ROW(CGROUP_MEMORY, "cgroup.memory", "memory is limited per process, not for the box"),
	LAYER_ROW(CGROUP_PIDS, "cgroup.pids", "processes are counted per user, not for the box"),
	LAYER_ROW(CGROUP_CPU, "cgroup.cpu", "a box can use every core there is"),
	LAYER_ROW(UID_RANGE, "uid_range", "agent, payload and other boxes share one host user"),
	LAYER_ROW(CAPS, "caps", "the program keeps capabilities"),
	LAYER_ROW(NO_NEW_PRIVS, "no_new_privs", "a setuid program can raise privilege"),
	LAYER_ROW(SECCOMP, "seccomp", "every system call of the kernel can be attacked"),
	LAYER_ROW(LANDLOCK, "landlock",
                  "file access has one barrier less, images cannot be imported"),
	LAYER_ROW(RLIMITS, "rlimits", "files, descriptors and core dumps are not bounded"),
};
static_assert(ARRAY_SIZE(layers) == LAYER_COUNT, "every layer has a row");

const char *layer_name(enum wire_layer layer)
{
	return (unsigned)layer < LAYER_COUNT ? layers[layer].name : "?";
}

const char *layer_loss(enum wire_layer layer)
{
	return (unsigned)layer < LAYER_COUNT ? layers[layer].loss : "?";
}
