/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * What /proc tells about the whole machine, or lets one do to it. Covered by mounts, which hold for
 * every spelling of a path. Each costs a few microseconds per box, so the list has what matters and
 * only names that this kernel has are covered. Settings below /proc/sys stay, read-only: runtimes
 * read some of them.
 */
static const char *const secret_names[] = {
	"acpi",        "asound",     "bus",           "cmdline",    "config.gz",
	"driver",      "fs",         "interrupts",    "irq",        "kallsyms",
	"kcore",       "key-users",  "keys",          "kmsg",       "kpagecgroup",
	"kpagecount",  "kpageflags", "latency_stats", "locks",      "modules",
	"sched_debug", "scsi",       "sysrq-trigger", "timer_list", "timer_stats",
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

int step_proc(struct build *b attr_unused, struct error *err)
{
	/* Read-only also keeps the payload from lowering its oom_score_adj. */
	if (mount("proc", "proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
	          "hidepid=invisible") == 0)
		return 0;
	return error_set(err, ERR_BOX_FAILED, errno, "mount /proc%s",
	                 errno == EPERM ? ": the kernel wants the outer /proc to be all in sight"
	                                : "");
}

int step_masks(struct build *b, struct error *err)
{
	const struct host *host = b->host;

	/* One name below the /proc that was just mounted: relative to it, not to a path. */
	if (chdir("proc") < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "enter /proc");
	for (size_t i = 0; i < host->mask_count; i++) {
		const char *source = host->masks[i].is_dir ? ROOT_MASK_DIR : ROOT_MASK_FILE;

		/* A module that was unloaded took its file along: nothing left to hide. */
		if (mount(source, host->masks[i].name, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
			return error_set(err, ERR_BOX_FAILED, errno, "cover /proc/%s",
			                 host->masks[i].name);
	}
	return 0;
}
