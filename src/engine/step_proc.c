/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "engine/mount.h"

/*
 * What /proc tells about the whole machine, or lets one do to it. Covered by mounts, which hold for
 * every spelling of a path. Read-only settings below /proc/sys stay: runtimes read some of them.
 */
static const char *const secret_names[] = {
	"acpi",        "asound",      "buddyinfo",     "bus",         "config.gz", "diskstats",
	"driver",      "fs",          "interrupts",    "iomem",       "ioports",   "irq",
	"kallsyms",    "kcore",       "key-users",     "keys",        "kmsg",      "kpagecgroup",
	"kpagecount",  "kpageflags",  "latency_stats", "modules",     "mtrr",      "pagetypeinfo",
	"sched_debug", "scsi",        "slabinfo",      "softirqs",    "swaps",     "sysrq-trigger",
	"timer_list",  "timer_stats", "tty",           "vmallocinfo", "zoneinfo",  "cmdline",
	"dma",         "execdomains", "locks",         "partitions",  "schedstat",
};

static_assert(ARRAY_SIZE(secret_names) <= MASKS_MAX, "room for all names");

void proc_masks_find(struct host *host)
{
	char path[64];
	struct stat st;

	host->mask_count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(secret_names); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%s", secret_names[i]);
		if (lstat(path, &st) == 0)
			host->masks[host->mask_count++] = (struct proc_mask){
				.name = secret_names[i],
				.is_dir = S_ISDIR(st.st_mode),
			};
	}
}

int step_proc(struct build *b, struct error *err)
{
	const struct mount_option options[] = {
		{"hidepid", "invisible"},
		{NULL,      NULL       },
	};

	/* Read-only also keeps the payload from lowering its oom_score_adj. */
	b->proc = mount_new("proc", options,
	                    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
	                            MOUNT_ATTR_NOEXEC,
	                    b->root, "proc");
	if (b->proc == -EPERM)
		return error_set(err, ERR_BOX_FAILED, EPERM,
		                 "mount /proc: the kernel wants the outer /proc without anything "
		                 "mounted over it");
	if (b->proc < 0)
		return error_set(err, ERR_BOX_FAILED, -b->proc, "mount /proc");
	return 0;
}

int step_masks(struct build *b, struct error *err)
{
	const struct host *host = b->host;

	for (size_t i = 0; i < host->mask_count; i++) {
		const char *source = host->masks[i].is_dir ? ROOT_MASK_DIR : ROOT_MASK_FILE;
		int r = mount_bind(source, 0, 0, b->proc, host->masks[i].name);

		/* A module that was unloaded took its file along: nothing left to hide. */
		if (r < 0 && r != -ENOENT)
			return error_set(err, ERR_BOX_FAILED, -r, "cover /proc/%s",
			                 host->masks[i].name);
	}
	return 0;
}
