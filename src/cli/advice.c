/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <errno.h>
#include <stddef.h>

#include "base/str.h"
#include "wire/layer.h"

#define KERNEL_OPTION(name)                                                                        \
	"use a kernel with " name "=y (every distribution's own kernel has it); inside a "         \
	"container, run Millibox on the host or in a privileged one"
#define USER_NAMESPACES                                                                            \
	"start milliboxd as root, or allow user namespaces: sysctl -w "                            \
	"user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1"
#define DELEGATE                                                                                   \
	"start milliboxd as root, or with the unit that comes with it; as an ordinary user: "      \
	"systemd-run --user --scope -p Delegate=yes milliboxd"

/* Names are those of 'millibox-engine --probe'. A layer's loss is the one that results use, so it
 * stays empty here. */
/* clang-format off: a row is one check, however long its line. */
static const struct advice advices[] = {
  /* layers */
	{"user",           NULL,			       USER_NAMESPACES                       },
	{"pid",            NULL,			       KERNEL_OPTION("CONFIG_PID_NS")        },
	{"mnt",            NULL,			       KERNEL_OPTION("CONFIG_NAMESPACES")    },
	{"net",            NULL,			       KERNEL_OPTION("CONFIG_NET_NS")        },
	{"ipc",            NULL,			       KERNEL_OPTION("CONFIG_IPC_NS")        },
	{"uts",            NULL,			       KERNEL_OPTION("CONFIG_UTS_NS")        },
	{"cgroup",         NULL,			       KERNEL_OPTION("CONFIG_CGROUPS")       },
	{"time",           NULL,			       KERNEL_OPTION("CONFIG_TIME_NS")       },
	{"cgroup.memory",  NULL,                               DELEGATE                              },
	{"cgroup.pids",    NULL,			       DELEGATE                              },
	{"cgroup.cpu",     NULL,			       DELEGATE                              },
	{"uid_range",      NULL,
         "start milliboxd as root, or give the user ids: apt install uidmap && "
         "usermod --add-subuids 200000-265535 --add-subgids 200000-265535 $USER"                     },
	{"caps",           NULL,
         "update the kernel: capabilities cannot be left out of one that is supported"               },
	{"no_new_privs",   NULL,			       "update the kernel to 3.5 or newer"   },
	{"seccomp",        NULL,			       KERNEL_OPTION("CONFIG_SECCOMP_FILTER")},
	{"landlock",       NULL,
         "use a kernel from 5.13 with CONFIG_SECURITY_LANDLOCK=y and add landlock to its "
         "lsm= parameter: cat /sys/kernel/security/lsm shows the present list"                       },
	{"rlimits",        NULL,
         "start milliboxd with hard limits that are not below those of a box: ulimit -H -a"          },
 /* runtimes */
	{"runtime.python", "programs in python cannot be run", "apt install python3"                 },
	{"runtime.shell",  "programs in shell cannot be run",  "apt install bash"                    },
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
