/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/id.h"
#include "base/str.h"

/*
 * Files of /proc that expose or control the whole machine. They are covered by mounts, which hold
 * for every spelling of a path. Each mount costs microseconds per box, so only names that this
 * kernel has are covered. /proc/sys stays readable: runtimes read some settings. stat, meminfo and
 * loadavg too: Node, psutil and procps cannot do without.
 */
static const char *const secret_names[] = {
	"acpi",        "asound",     "buddyinfo",     "bus",      "cgroups",       "cmdline",
	"config.gz",   "diskstats",  "driver",        "fs",       "interrupts",    "irq",
	"kallsyms",    "kcore",      "key-users",     "keys",     "kmsg",          "kpagecgroup",
	"kpagecount",  "kpageflags", "latency_stats", "locks",    "modules",       "pressure",
	"sched_debug", "schedstat",  "scsi",          "softirqs", "sysrq-trigger", "timer_list",
	"timer_stats", "vmstat",     "zoneinfo",
};

/* Identifies the host: two boxes could tell that they are neighbours. Programs read it, so it is
 * replaced instead of hidden. */
#define BOOT_ID     "sys/kernel/random/boot_id"
#define BOOT_ID_OWN "../" PROC_BOOT_ID
#define COVER_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static_assert(ARRAY_SIZE(secret_names) + 1 <= MASKS_MAX, "room for all names");

static void add_mask(struct host *host, const char *name, const char *cover)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%s", name);
	if (lstat(path, &st) < 0)
		return;
	if (!cover)
		cover = S_ISDIR(st.st_mode) ? ROOT_MASK_DIR : ROOT_MASK_FILE;
	host->masks[host->mask_count++] = (struct proc_mask){.name = name, .cover = cover};
}

void proc_masks_find(struct host *host)
{
	host->mask_count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(secret_names); i++)
		add_mask(host, secret_names[i], NULL);
	add_mask(host, BOOT_ID, BOOT_ID_OWN);
}

int step_proc(struct build *b attr_unused, struct error *err)
{
	/* Read-only also keeps the payload from lowering its oom_score_adj. */
	if (mount("proc", "proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
	          "hidepid=invisible") == 0)
		return 0;
	return error_set(err, ERR_BOX_FAILED, errno, "mount /proc%s",
	                 errno == EPERM ? ": the outer /proc is not fully visible" : "");
}

/* A random (version 4) UUID, in a directory that the payload cannot write. */
int proc_make_boot_id(const char *path)
{
	unsigned char b[16];
	char text[40];
	int len;

	id_random_bytes(b, sizeof(b));
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	len = snprintf(text, sizeof(text),
	               "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n",
	               b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
	               b[12], b[13], b[14], b[15]);
	return file_create_at(AT_FDCWD, path, 0444, text, (size_t)len);
}

int step_masks(struct build *b, struct error *err)
{
	const struct host *host = b->host;
	int r;

	if (chdir("proc") < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "enter /proc");
	r = proc_make_boot_id(BOOT_ID_OWN);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "make a boot id");
	for (size_t i = 0; i < host->mask_count; i++) {
		const struct proc_mask *mask = &host->masks[i];

		/* ENOENT: its module was unloaded. */
		if (mount(mask->cover, mask->name, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
			return error_set(err, ERR_BOX_FAILED, errno, "cover /proc/%s", mask->name);
		/* The other covers are read-only in the engine's root already. */
		if (str_equal(mask->name, BOOT_ID) &&
		    mount(NULL, BOOT_ID, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | COVER_FLAGS,
		          NULL) < 0)
			return error_set(err, ERR_BOX_FAILED, errno, "boot id");
	}
	return 0;
}
