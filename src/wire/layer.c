/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/layer.h"

#include "base/attr.h"

static const struct {
	const char *name, *loss;
} layers[] = {
	[LAYER_USER] = {"user",          "root inside the box is root of the host"            },
	[LAYER_PID] = {"pid",           "host processes can be seen and signalled"           },
	[LAYER_MNT] = {"mnt",           "the host's files can be reached"                    },
	[LAYER_NET] = {"net",           "the host's network can be reached"                  },
	[LAYER_IPC] = {"ipc",           "shared memory and queues of the host can be reached"},
	[LAYER_UTS] = {"uts",           "the host's name is shown"                           },
	[LAYER_CGROUP_NS] = {"cgroup",        "the box's place among the host's groups is shown"   },
	[LAYER_TIME] = {"time",          "the host's uptime is shown"                         },
	[LAYER_CGROUP_MEMORY] = {"cgroup.memory", "memory is limited per process, not for the box"     },
	[LAYER_CGROUP_PIDS] = {"cgroup.pids",   "processes are counted per user, not for the box"    },
	[LAYER_CGROUP_CPU] = {"cgroup.cpu",    "a box can use every core there is"                  },
	[LAYER_UID_RANGE] = {"uid_range",     "agent, payload and other boxes share one host user" },
	[LAYER_CAPS] = {"caps",          "the program keeps capabilities"                     },
	[LAYER_NO_NEW_PRIVS] = {"no_new_privs",  "a setuid program can raise privilege"               },
	[LAYER_SECCOMP] = {"seccomp",       "every system call of the kernel can be attacked"    },
	[LAYER_LANDLOCK] = {"landlock",      "file access has one barrier less"                   },
	[LAYER_RLIMITS] = {"rlimits",       "files, descriptors and core dumps are not bounded"  },
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
