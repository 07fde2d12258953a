/* SPDX-License-Identifier: Apache-2.0 */
#include "core/observe/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"

/* Unreadable values are left out: a zero would look like a measurement. */

#define STATM_LEN 128

/* "size resident ...", in pages. */
static void take_memory(struct metrics *m)
{
	char text[STATM_LEN];
	char *resident;
	uint64_t size_pages, resident_pages;
	double page = (double)sysconf(_SC_PAGESIZE);

	if (file_read_text_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) < 0)
		return;
	resident = strchr(text, ' ');
	if (!resident)
		return;
	*resident++ = '\0';
	resident[strcspn(resident, " ")] = '\0';
	if (parse_u64(text, &size_pages) < 0 || parse_u64(resident, &resident_pages) < 0)
		return;
	metrics_set(m, METRIC_VIRTUAL, (double)size_pages * page);
	metrics_set(m, METRIC_RSS, (double)resident_pages * page);
}

static void take_descriptors(struct metrics *m)
{
	struct rlimit limit;
	size_t count = 0;
	int fd = fd_open("/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		metrics_set(m, METRIC_MAX_FDS, (double)limit.rlim_cur);
	if (!dir) {
		fd_close(fd);
		return;
	}
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	metrics_set(m, METRIC_FDS, (double)count - 3); /* ".", ".." and @fd */
}

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

void metrics_process(void *ctx attr_unused, struct metrics *m)
{
	struct rusage usage;

	take_memory(m);
	take_descriptors(m);
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		metrics_set(m, METRIC_CPU,
		            seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime));
}
